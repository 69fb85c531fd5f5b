import type { Router } from '@koa/router';
import { countBlockedAccounts } from '../../../db/repositories/merchants/account-blocks.ts';
import { requireWritable } from '../../../db/repositories/sweeps/figures.ts';
import { countHeld } from '../../../db/repositories/sweeps/queries.ts';
import { ok, send } from '../../http/request.ts';
import type { RequestState } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';

/**
 * Registers the health check for load balancers, without credentials: 200 if the database accepts writes, else 503.
 * `heldSubscriptions` counts the subscriptions whose workflow is newer than the database, `blockedAccounts` the accounts
 * whose charges a gateway refuses.
 */
export function healthRoutes(router: Router<RequestState>, { db }: Pick<ApiDeps, 'db'>): void {
  router.get('/health', async (ctx) => {
    await requireWritable(db);
    const heldSubscriptions = await countHeld(db);
    const blockedAccounts = await countBlockedAccounts(db);
    send(ctx, ok({ status: 'ok', heldSubscriptions, blockedAccounts }));
  });
}
