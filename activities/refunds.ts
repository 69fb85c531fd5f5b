import type { Db } from '../db/client.ts';
import { findIntent } from '../db/repositories/payments/orders.ts';
import { streamOf } from '../db/repositories/payments/events.ts';
import {
  findRefund,
  gatewayNameOf,
  markRefundSending,
  refundOutcomeOf,
  settleRefund,
} from '../db/repositories/payments/refunds.ts';
import type { Refund, RefundSettlement } from '../db/repositories/payments/refunds.ts';
import { findDecision } from '../db/repositories/payments/reviews.ts';
import type { RefundOutcome, RefundRef } from '../domain/refund.ts';
import { failpoint } from '../runtime/failpoints.ts';
import {
  isKeyTooOld,
  pauseIfTimeLeft,
  sendDeadline,
  unknownOrReview,
  unlessRejected,
} from './gateway-exchange.ts';
import type { SendLimits } from './gateway-exchange.ts';
import type { PaymentDeps } from './payments.ts';

export function createRefundActivities(deps: PaymentDeps) {
  return {
    /**
     * Sends the refund, or returns its recorded outcome. Every send uses the refund's idempotency key, so
     * repeated or concurrent calls refund once. `pending`: call again later. Throws a retryable error if the
     * database does not answer. `nowAt` is real time. `lookups` is the number of earlier calls that found no
     * outcome. Rule: D-§7.
     */
    async refundPayment(
      input: RefundRef & { nowAt: number; lookups?: number },
    ): Promise<RefundOutcome> {
      const { merchantId, refundId, nowAt, lookups = 0 } = input;
      const limits = { stopAt: sendDeadline(deps), lookups, realNowAt: nowAt };
      const refund = await findRefund(deps.db, merchantId, refundId);
      if (!refund) return { kind: 'refused', message: 'There is no such refund.' };
      const settlement = refundOutcomeOf(refund) ? null : await sendRefund(deps, refund, limits);
      const outcome = settlement
        ? await settle(deps.db, refund, settlement, nowAt)
        : await earlierOutcome(deps, refund);
      if (outcome.kind !== 'refunded') return outcome;
      // An earlier call may have recorded the refund, and its process may have died before it delivered the
      // event.
      const intent = await findIntent(deps.db, merchantId, refund.intentId);
      if (intent) await deps.wakeStream(streamOf(intent));
      return outcome;
    },
  };
}

async function settle(db: Db, refund: Refund, settlement: RefundSettlement, nowAt: number) {
  failpoint('before_settling_commits');
  const outcome = await settleRefund(db, refund, settlement, nowAt);
  failpoint('after_settling');
  return outcome;
}

async function earlierOutcome(deps: PaymentDeps, { merchantId, id }: Refund) {
  const refund = await findRefund(deps.db, merchantId, id);
  const outcome = refund && refundOutcomeOf(refund);
  if (!outcome) throw new Error(`${id} cannot be sent and is not decided`);
  return outcome;
}

/**
 * Sends the refund until the gateway answers or `stopAt` is reached. Returns null if another process has
 * settled the refund. A refund in REVIEW is not sent again, because an operator may be refunding by hand.
 */
async function sendRefund(
  deps: PaymentDeps,
  refund: Refund,
  { stopAt, lookups, realNowAt }: SendLimits,
): Promise<RefundSettlement | null> {
  const { db } = deps;
  const { merchantId, gatewayKey, gatewayChargeId, amountMinor, currency } = refund;
  if (refund.state === 'REVIEW') return outcomeInReview(db, refund);
  const gateway = await deps.gateways.of(merchantId, await gatewayNameOf(db, refund));
  if (!gateway.capabilities.refunds && refund.firstSentAt === null) {
    return refusedOrReview(refund, 'This gateway gives no refunds.');
  }
  for (;;) {
    if (isKeyTooOld(refund.firstSentAt, gateway)) {
      return { kind: 'review', reason: 'not decided, and its key is too old to resend' };
    }
    if (!(await markRefundSending(db, { merchantId, refundId: refund.id }))) return null;
    failpoint('before_gateway');
    const outcome = await unlessRejected(() =>
      gateway.refund({ key: gatewayKey, gatewayChargeId, amountMinor, currency }),
    );
    failpoint('after_gateway');
    switch (outcome.kind) {
      case 'refunded':
        return outcome;
      case 'refused':
        return refusedOrReview(refund, `The gateway refused the refund: ${outcome.reason}.`);
      case 'rejected':
        return { kind: 'review', reason: outcome.reason };
      case 'not_sent':
      case 'unknown':
        if (!(await pauseIfTimeLeft(deps, stopAt))) {
          return unknownOrReview(lookups, outcome.reason, realNowAt);
        }
    }
  }
}

/**
 * Returns `review` for the refund of a late charge, because a late charge must be refunded; else `refused`.
 */
function refusedOrReview(refund: Refund, reason: string): RefundSettlement {
  return { kind: refund.lateAttemptId === null ? 'refused' : 'review', reason };
}

async function outcomeInReview(db: Db, refund: Refund): Promise<RefundSettlement> {
  const { merchantId, id: subjectId } = refund;
  const decision = await findDecision(db, { merchantId, subjectId });
  if (!decision) return { kind: 'review', reason: refund.reason ?? 'waits for a person' };
  return decision.outcome === 'refunded'
    ? { kind: 'refunded', gatewayRefundId: decision.gatewayId ?? '' }
    : { kind: 'refused', reason: 'The payment could not be refunded.' };
}
