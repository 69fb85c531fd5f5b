import type { Router } from '@koa/router';
import { requireWritable } from '../../../db/repositories/sweeps/figures.ts';
import { countHeld } from '../../../db/repositories/sweeps/queries.ts';
import { ok, send } from '../../answers.ts';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';

/**
 * Registers the health check for load balancers, without credentials: 200 if the database accepts writes, else 503.
 * `heldSubscriptions` counts the subscriptions whose workflow is newer than the database.
 */
export function healthRoutes(router: Router<RequestState>, { db }: Pick<ApiDeps, 'db'>): void {
  router.get('/health', async (ctx) => {
    await requireWritable(db);
    send(ctx, ok({ status: 'ok', heldSubscriptions: await countHeld(db) }));
  });
}
