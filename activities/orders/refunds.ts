import type { Db } from '../../db/client.ts';
import { findIntent } from '../../db/repositories/payments/orders.ts';
import { streamOf } from '../../db/repositories/payments/events.ts';
import {
  findRefund,
  chargeOf,
  markRefundSending,
  refundOutcomeOf,
  settleRefund,
} from '../../db/repositories/payments/refunds.ts';
import type { Refund, RefundSettlement } from '../../db/repositories/payments/refunds.ts';
import { findDecision } from '../../db/repositories/payments/reviews.ts';
import type { OrderStep } from '../../domain/order.ts';
import type { RefundOutcome } from '../../domain/refund.ts';
import type { KnownRefund, PaymentGateway } from '../../gateways/port.ts';
import { failpoint } from '../../runtime/failpoints.ts';
import {
  pauseIfTimeLeft,
  sendDeadline,
  unknownOrReview,
  unlessRejected,
} from '../charging/gateway-exchange.ts';
import type { SendLimits } from '../charging/gateway-exchange.ts';
import type { OrderDeps } from '../deps.ts';

export function createRefundActivities(deps: OrderDeps) {
  return {
    /**
     * Sends or looks up a refund, also a SUCCEEDED one, which may fail later. Repeats refund once. `pending`: the caller
     * must call again later. Throws a retryable error. `nowAt` is real time.
     */
    async refundPayment(step: OrderStep<'refund'>): Promise<RefundOutcome> {
      const { merchantId, refundId, nowAt, lookups = 0 } = step;
      const limits = { stopAt: sendDeadline(deps, lookups), lookups, realNowAt: nowAt };
      const refund = await findRefund(deps.db, merchantId, refundId);
      if (!refund) return { kind: 'refused', message: 'There is no such refund.' };
      const settlement = await settlementOf(deps, refund, limits);
      if (settlement?.kind === 'unanswered') return { kind: 'pending' };
      const outcome = settlement
        ? await settle(deps.db, refund, settlement, nowAt)
        : await recordedOutcome(deps, refund);
      if (outcome.kind === 'pending') return outcome;
      // The process that recorded the outcome may have died before the delivery.
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

async function recordedOutcome(deps: OrderDeps, { merchantId, id }: Refund) {
  const refund = await findRefund(deps.db, merchantId, id);
  const outcome = refund && refundOutcomeOf(refund);
  if (!outcome) throw new Error(`${id} cannot be sent and is not decided`);
  return outcome;
}

/** The gateway did not answer about a refund that it has accepted. Nothing is recorded. */
interface Unanswered {
  kind: 'unanswered';
}

async function settlementOf(
  deps: OrderDeps,
  refund: Refund,
  limits: SendLimits,
): Promise<RefundSettlement | Unanswered | null> {
  if (refund.state === 'REFUSED') return null;
  // A refund in REVIEW is not sent again, because an operator may be refunding by hand.
  if (refund.state === 'REVIEW') return outcomeInReview(deps, refund);
  const gateway = await gatewayOf(deps, refund);
  if (refund.state !== 'PENDING' && refund.state !== 'SUCCEEDED') {
    return sendRefund(deps, gateway, refund, limits);
  }
  return lookUpAccepted(deps, gateway, refund, limits);
}

async function gatewayOf({ db, gateways }: OrderDeps, refund: Refund): Promise<PaymentGateway> {
  const { gateway } = await chargeOf(db, refund);
  return gateways.of(refund.merchantId, gateway);
}

/** Sends until the gateway answers or `stopAt`. Null if another process moved the refund on. */
async function sendRefund(
  deps: OrderDeps,
  gateway: PaymentGateway,
  refund: Refund,
  { stopAt, lookups, realNowAt }: SendLimits,
): Promise<RefundSettlement | null> {
  const { merchantId } = refund;
  let mayBeAtGateway = refund.firstSentAt !== null;
  for (;;) {
    if (!(await markRefundSending(deps.db, { merchantId, refundId: refund.id }))) return null;
    failpoint('before_gateway');
    const outcome = await unlessRejected(() => gateway.refund(requestOf(refund)));
    failpoint('after_gateway');
    switch (outcome.kind) {
      case 'refunded':
      case 'pending':
        return outcome;
      case 'refused':
        // An earlier send was accepted, and its answer lost.
        if (outcome.reason === 'refund_failed' && refund.state !== 'CREATED') {
          return failedLater(refund, outcome);
        }
        return refusedOrReview(refund, `The gateway refused the refund: ${reasonOf(outcome)}.`);
      case 'rejected':
        return { kind: 'review', reason: outcome.reason };
      case 'not_sent':
      case 'unknown':
        mayBeAtGateway ||= outcome.kind === 'unknown';
        if (await pauseIfTimeLeft(deps, stopAt)) continue;
        if (!mayBeAtGateway) return { kind: 'unsent', reason: outcome.reason };
        return unknownOrReview(lookups, outcome.reason, realNowAt);
    }
  }
}

function lookUp(gateway: PaymentGateway, refund: Refund) {
  const { gatewayRefundId } = refund;
  return unlessRejected(() => gateway.lookupRefund({ ...requestOf(refund), gatewayRefundId }));
}

/** Looks up an accepted refund. Null: a SUCCEEDED one has not failed, or a person has decided that it was made. */
async function lookUpAccepted(
  deps: OrderDeps,
  gateway: PaymentGateway,
  refund: Refund,
  { stopAt }: SendLimits,
): Promise<RefundSettlement | Unanswered | null> {
  const isPending = refund.state === 'PENDING';
  const { merchantId, id: subjectId } = refund;
  const decision = isPending ? null : await findDecision(deps.db, { merchantId, subjectId });
  if (decision?.outcome === 'refunded') return null;
  for (;;) {
    const found = await lookUp(gateway, refund);
    switch (found.kind) {
      case 'refunded':
      case 'pending':
        return isPending ? found : null;
      case 'refused':
        return failedLater(refund, found);
      case 'absent':
        return isPending ? { kind: 'review', reason: 'the gateway has lost the refund' } : null;
      case 'rejected':
        // A wrong setting, such as a revoked key. The refund itself is still pending.
        return { kind: 'unanswered' };
      case 'unknown':
        if (!(await pauseIfTimeLeft(deps, stopAt))) return { kind: 'unanswered' };
    }
  }
}

type Refused = Extract<KnownRefund, { kind: 'refused' }>;

function reasonOf({ reason, gatewayCode }: Refused): string {
  return gatewayCode === undefined ? reason : `${reason} (${gatewayCode})`;
}

function requestOf({ gatewayKey: key, gatewayChargeId, amountMinor, currency }: Refund) {
  return { key, gatewayChargeId, amountMinor, currency };
}

/** Returns `review` for the refund of a late charge, because a late charge must be refunded; else `refused`. */
function refusedOrReview({ lateAttemptId }: Refund, reason: string) {
  return { kind: lateAttemptId === null ? 'refused' : 'review', reason } as const;
}

function failedLater(refund: Refund, outcome: Refused): RefundSettlement {
  const reason = `The gateway accepted the refund, which failed later: ${reasonOf(outcome)}.`;
  return { ...refusedOrReview(refund, reason), hasFailed: true };
}

/** REVIEW is never sent again. An accepted refund overrides every decision except *refunded*. */
async function outcomeInReview(deps: OrderDeps, refund: Refund): Promise<RefundSettlement> {
  const { merchantId, id: subjectId } = refund;
  const decision = await findDecision(deps.db, { merchantId, subjectId });
  if (decision?.outcome === 'refunded') {
    return { kind: 'refunded', gatewayRefundId: decision.gatewayId ?? '' };
  }
  const found = await lookUp(await gatewayOf(deps, refund), refund);
  if (found.kind === 'refunded' || found.kind === 'pending') return found;
  if (found.kind === 'refused' && refund.lateAttemptId === null) return failedLater(refund, found);
  return decision
    ? { kind: 'refused', reason: 'The payment could not be refunded.' }
    : { kind: 'review', reason: refund.reason ?? 'waits for manual review' };
}
