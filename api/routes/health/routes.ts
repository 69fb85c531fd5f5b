import type { Router } from '@koa/router';
import { sql } from 'drizzle-orm';
import { ok, send } from '../../answers.ts';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';

/** Registers the health check for load balancers, without credentials: 200 if the database answers, else 503. */
export function healthRoutes(router: Router<RequestState>, { db }: Pick<ApiDeps, 'db'>): void {
  router.get('/health', async (ctx) => {
    await db.execute(sql`select 1`);
    send(ctx, ok({ status: 'ok' }));
  });
}
