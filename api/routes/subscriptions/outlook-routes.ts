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
 * The upcoming charges and the timeline of a subscription. The workflow answers. For an ended
 * subscription, or when Temporal has no workflow for it, the answer comes from the row. Extensions.
 * Rule: D-§7.
 */
export function outlookRoutes(router: Router<RequestState>, deps: ApiDeps): void {
  const { workflows } = deps;

  router.get('/subscription/upcoming/:subscriptionId', async (ctx) => {
    const { limit = UPCOMING_LIMIT_DEFAULT } = readFields(UpcomingQuery, ctx.query);
    const { ref, state } = await subscriptionOf(deps, ctx);
    const charges = state.status === 'ENDED' ? null : await workflows.upcoming(ref, limit);
    send(ctx, ok(presentUpcoming(charges ?? upcomingCharges(state, limit))));
  });

  router.get('/subscription/timeline/:subscriptionId', async (ctx) => {
    const { ref, state } = await subscriptionOf(deps, ctx);
    const log = state.status === 'ENDED' ? null : await workflows.timeline(ref);
    send(ctx, ok(presentTimeline(log ?? state.log)));
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
