import type { Router } from '@koa/router';
import { sql } from 'drizzle-orm';
import { countHeld } from '../../../db/repositories/sweeps/queries.ts';
import { ok, send } from '../../answers.ts';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';

/**
 * A statement that locks no row, but that Postgres refuses in a read-only session and on a standby. It waits for
 * no statement except a change of the table.
 */
const PROBE = sql`select from merchant limit 0 for update`;

/**
 * Registers the health check for load balancers, without credentials: 200 if the database accepts writes, else 503.
 * `heldSubscriptions` counts the subscriptions whose workflow is newer than the database.
 */
export function healthRoutes(router: Router<RequestState>, { db }: Pick<ApiDeps, 'db'>): void {
  router.get('/health', async (ctx) => {
    await db.execute(PROBE);
    send(ctx, ok({ status: 'ok', heldSubscriptions: await countHeld(db) }));
  });
}
