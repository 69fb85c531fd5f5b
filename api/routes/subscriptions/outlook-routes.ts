import type { Router } from '@koa/router';
import { findSubscription } from '../../../db/repositories/subscriptions-read.ts';
import type { SubscriptionRef, SubscriptionState } from '../../../domain/subscription/state.ts';
import { upcomingCharges } from '../../../domain/subscription/upcoming.ts';
import { notFound, ok, send } from '../../answers.ts';
import { callerOf, pathParam } from '../../context.ts';
import type { Context, RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { readFields } from '../../fields.ts';
import { presentTimeline, presentUpcoming } from './present.ts';
import { UPCOMING_LIMIT_DEFAULT, UpcomingQuery } from './schema.ts';

/**
 * What is to come and what has been. The workflow answers while there is one; once the subscription
 * has ended, or when Temporal knows no workflow of it, its row does. Extensions. Rule: D-§7.
 */
export function outlookRoutes(router: Router<RequestState>, deps: ApiDeps): void {
  const { workflows } = deps;

  router.get('/subscription/upcoming/:subscriptionId', async (ctx) => {
    const { limit = UPCOMING_LIMIT_DEFAULT } = readFields(UpcomingQuery, ctx.query);
    const { ref, state } = await subscriptionOf(deps, ctx);
    const asked = state.status === 'ENDED' ? null : await workflows.upcoming(ref, limit);
    send(ctx, ok(presentUpcoming(asked ?? upcomingCharges(state, limit))));
  });

  router.get('/subscription/timeline/:subscriptionId', async (ctx) => {
    const { ref, state } = await subscriptionOf(deps, ctx);
    const asked = state.status === 'ENDED' ? null : await workflows.timeline(ref);
    send(ctx, ok(presentTimeline(asked ?? state.log)));
  });
}

/** The merchant's subscription that the path names. Rule: D-21. */
async function subscriptionOf(
  { db }: ApiDeps,
  ctx: Context,
): Promise<{ ref: SubscriptionRef; state: SubscriptionState }> {
  const ref = {
    merchantId: callerOf(ctx).id,
    subscriptionId: pathParam(ctx, 'subscriptionId'),
  };
  const subscription = await findSubscription(db, ref.merchantId, ref.subscriptionId);
  if (!subscription) throw notFound('subscription');
  return { ref, state: subscription.state };
}
