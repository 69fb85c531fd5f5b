import type { Router } from '@koa/router';
import { findSubscription } from '../../../db/repositories/subscriptions-read.ts';
import { notFound, ok, send } from '../../answers.ts';
import { callerOf, pathParam } from '../../context.ts';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { readLimit } from '../../middleware/rate-limit.ts';
import { answerInTransaction } from '../../idempotency.ts';
import { commandRoutes } from './command-routes.ts';
import { createSubscriptionIn } from './create.ts';
import { listRoutes } from './list-routes.ts';
import { oneTimeChargeRoutes } from './one-time-charge.ts';
import { outlookRoutes } from './outlook-routes.ts';
import { presentSubscription } from './present.ts';
import { readCreateSubscription } from './schema.ts';

export function subscriptionRoutes(router: Router<RequestState>, deps: ApiDeps): void {
  const { db, now } = deps;

  /** Rule: IF-4.3. */
  router.post('/subscription/create', async (ctx) => {
    const merchant = callerOf(ctx);
    const body = readCreateSubscription(ctx.state.body, now());
    await answerInTransaction(deps, ctx, (tx) => createSubscriptionIn(tx, deps, merchant, body));
  });

  /** Rules: IF-4.5, D-22. */
  router.get('/subscription/get-subscription/:subscriptionId', readLimit(deps), async (ctx) => {
    const subscriptionId = pathParam(ctx, 'subscriptionId');
    const subscription = await findSubscription(db, callerOf(ctx).id, subscriptionId);
    if (!subscription) throw notFound('subscription');
    send(ctx, ok(presentSubscription(deps, subscription)));
  });

  commandRoutes(router, deps);
  oneTimeChargeRoutes(router, deps);
  outlookRoutes(router, deps);
  listRoutes(router, deps);
}
