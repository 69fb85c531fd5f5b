import { findAttempt } from '../../db/repositories/subscriptions/attempts.ts';
import type { Attempt } from '../../db/repositories/subscriptions/attempts.ts';
import { isUnproven } from '../../domain/settlement.ts';
import type { Settlement } from '../../domain/settlement.ts';
import { bookLateCharge, lateWatch } from '../../db/repositories/payments/late-charges.ts';
import { closeReview } from '../../db/repositories/payments/reviews.ts';
import type { OrderStep } from '../../domain/order.ts';
import { isLastLateLook } from '../../domain/review.ts';
import type { AttemptRef, LateChargeOutcome } from '../../domain/review.ts';
import { chargeRefOf } from '../charging/charge-exchange.ts';
import { unlessRejected } from '../charging/gateway-exchange.ts';
import type { Orders } from '../../temporal/orders.ts';
import type { ActivityDeps } from '../deps.ts';

type LateChargeDeps = Pick<ActivityDeps, 'db' | 'gateways' | 'subscriptionWorkflows' | 'orders'>;

/** A late charge was made by the gateway although its attempt was settled as not paid. */
export function createLateChargeActivities(deps: LateChargeDeps) {
  return {
    /**
     * Looks up the charge of an attempt settled as not paid, and records and refunds a charge that it finds.
     * `absent`: no later call has to look. A repeat is safe. Throws a retryable error.
     */
    async lookForLateCharge(step: OrderStep<'lateCharge'>): Promise<LateChargeOutcome> {
      const { nowAt, lookups = 0, ...ref } = step;
      const watch = await lateWatch(deps.db, ref);
      switch (watch.kind) {
        case 'over':
          return { kind: 'absent' };
        case 'waiting':
          return { kind: 'pending' };
        case 'found':
          return book(deps, ref, watch.gatewayChargeId, nowAt);
        case 'watched': {
          const { attempt } = watch;
          const gateway = await deps.gateways.of(attempt.merchantId, attempt.gateway);
          const found = await unlessRejected(() => gateway.lookup(chargeRefOf(attempt)));
          if (found.kind === 'succeeded') return book(deps, ref, found.gatewayChargeId, nowAt);
          if (found.kind === 'another_charge' || found.kind === 'rejected') {
            return { kind: 'pending', needsPerson: true };
          }
          const isNotCharged = found.kind === 'absent' || found.kind === 'declined';
          if (!isNotCharged || !isLastLateLook(lookups)) return { kind: 'pending' };
          await closeReview(deps.db, { merchantId: ref.merchantId, subjectId: ref.attemptId });
          return { kind: 'absent' };
        }
      }
    },
  };
}

/** Starts the late-charge watch if the gateway may still make the charge. Never throws. */
export async function watchUnproven(
  orders: Pick<Orders, 'ensureRunning'>,
  attempt: Attempt,
  settlement: Settlement,
): Promise<void> {
  if (!isUnproven(settlement)) return;
  const { merchantId, id: attemptId } = attempt;
  await orders.ensureRunning('lateCharge', { merchantId, attemptId }).catch(() => undefined);
}

async function book(
  { db, subscriptionWorkflows, orders }: LateChargeDeps,
  { merchantId, attemptId }: AttemptRef,
  gatewayChargeId: string,
  nowAt: number,
): Promise<LateChargeOutcome> {
  const attempt = await findAttempt(db, { merchantId, id: attemptId });
  const { refundId, subscription } = await bookLateCharge(db, attempt, gatewayChargeId, nowAt);
  // The transaction has changed the timeline in the row, which the workflow must read again.
  if (subscription) await subscriptionWorkflows.recheck(subscription);
  await orders.ensureRunning('refund', { merchantId, refundId });
  return { kind: 'found', refundId, gatewayChargeId };
}
