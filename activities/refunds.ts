import { findIntent } from '../db/repositories/payments.ts';
import { streamOf } from '../db/repositories/intent-events.ts';
import {
  findRefund,
  markRefundSending,
  refundOutcomeOf,
  settleRefund,
} from '../db/repositories/refunds.ts';
import type { Refund, RefundSettlement } from '../db/repositories/refunds.ts';
import type { RefundOutcome, RefundRef } from '../domain/refund.ts';
import { failpoint } from '../runtime/failpoints.ts';
import { isKeyTooOld, pauseBefore, sendsUntil, unlessRejected } from './gateway-exchange.ts';
import type { PaymentDeps } from './payments.ts';

/** Money on its way back. */
export function createRefundActivities(deps: PaymentDeps) {
  return {
    /**
     * Carries a refund one step on. Every send is under the refund's own key, so that running this
     * again, or twice at once, gives back once. `pending`: call again later. Throws, retryably, when
     * the database does not answer. `nowAt` is real time. Rule: D-§7.
     */
    async refundPayment(input: RefundRef & { nowAt: number }): Promise<RefundOutcome> {
      const { merchantId, refundId, nowAt } = input;
      const refund = await findRefund(deps.db, merchantId, refundId);
      if (!refund) return { kind: 'refused', message: 'There is no such refund.' };
      const settlement = refundOutcomeOf(refund) ? null : await giveBack(deps, refund);
      if (!settlement) return decidedBefore(deps, refund);
      failpoint('before_settling_commits');
      const outcome = await settleRefund(deps.db, refund, settlement, nowAt);
      failpoint('after_settling');
      const intent = await findIntent(deps.db, merchantId, refund.intentId);
      if (intent && outcome.kind === 'refunded') await deps.wakeStream(streamOf(intent));
      return outcome;
    },
  };
}

async function decidedBefore(deps: PaymentDeps, { merchantId, id }: Refund) {
  const refund = await findRefund(deps.db, merchantId, id);
  const outcome = refund && refundOutcomeOf(refund);
  if (!outcome) throw new Error(`${id} cannot be sent and is not decided`);
  return outcome;
}

/** What the gateway says, asked for a few seconds; null when somebody decided the refund meanwhile. */
async function giveBack(
  { db, gateway }: PaymentDeps,
  refund: Refund,
): Promise<RefundSettlement | null> {
  const { merchantId, gatewayKey, gatewayChargeId, amountMinor, currency } = refund;
  if (!gateway.capabilities.refunds && refund.firstSentAt === null) {
    return { kind: 'refused', reason: 'This gateway gives no refunds.' };
  }
  const stopAt = sendsUntil();
  for (;;) {
    if (isKeyTooOld(refund.firstSentAt, gateway)) {
      return { kind: 'unknown', reason: 'not decided, and its key is too old to resend' };
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
        return { kind: 'refused', reason: `The gateway refused the refund: ${outcome.reason}.` };
      case 'not_sent':
      case 'unknown':
        if (!(await pauseBefore(stopAt))) return { kind: 'unknown', reason: outcome.reason };
    }
  }
}
