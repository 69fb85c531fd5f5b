import type { Router } from '@koa/router';
import { findSubscription, hasSubscription } from '../../../db/repositories/subscriptions-read.ts';
import { notFound, ok, send } from '../../answers.ts';
import { executeCommand } from '../../commands.ts';
import { callerOf, pathParam } from '../../context.ts';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { readFields } from '../../fields.ts';
import { answerInTransaction, answerOutcome } from '../../idempotency.ts';
import { createSubscriptionIn } from './create.ts';
import { presentSubscription } from './present.ts';
import { CancelSubscriptionBody, readCreateSubscription } from './schema.ts';

export function subscriptionRoutes(router: Router<RequestState>, deps: ApiDeps): void {
  const { db, now, workflows } = deps;

  /** Rule: IF-4.3. */
  router.post('/subscription/create', async (ctx) => {
    const merchant = callerOf(ctx);
    const body = readCreateSubscription(ctx.state.body, now());
    await answerInTransaction(deps, ctx, (tx) => createSubscriptionIn(tx, deps, merchant, body));
  });

  /** Rule: IF-4.5. */
  router.get('/subscription/get-subscription/:subscriptionId', async (ctx) => {
    const subscriptionId = pathParam(ctx, 'subscriptionId');
    const subscription = await findSubscription(db, callerOf(ctx).id, subscriptionId);
    if (!subscription) throw notFound('subscription');
    send(ctx, ok(presentSubscription(subscription)));
  });

  /** Rules: IF-4.7, D-16. */
  router.post('/subscription/merchant/cancel', async (ctx) => {
    const { subscriptionId } = readFields(CancelSubscriptionBody, ctx.state.body);
    const merchantId = callerOf(ctx).id;
    await answerOutcome(deps, ctx, async ({ commandId }) => {
      if (!(await hasSubscription(db, merchantId, subscriptionId))) throw notFound('subscription');
      const ref = { merchantId, subscriptionId };
      await executeCommand(workflows, ref, { kind: 'cancel', commandId, reason: 'cancelled' });
      return ok({});
    });
  });
}
