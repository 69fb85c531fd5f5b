import { streamOf } from '../../db/repositories/payments/events.ts';
import {
  lookAtPayment,
  openPaymentAttempt,
  settlePayment,
} from '../../db/repositories/payments/charges.ts';
import type { PaymentTurn } from '../../db/repositories/payments/charges.ts';
import type { OrderStep } from '../../domain/order.ts';
import type { PaymentOrder, PaymentOutcome } from '../../domain/payment-intent.ts';
import { failpoint } from '../../runtime/failpoints.ts';
import type { ChargingDeps } from '../deps.ts';
import { collect, isPayerGone, presentPayerOf } from '../charging/charge-exchange.ts';
import { sendDeadline } from '../charging/gateway-exchange.ts';
import { watchUnproven } from './late-charges.ts';
import { redeemToken } from '../charging/redeem-token.ts';

export function createPaymentActivities(deps: ChargingDeps) {
  return {
    /**
     * Charges an order once: opens its attempt or continues an earlier call's, sends or looks up. `pending`: call
     * again later. Throws a retryable error if the database, or at a redemption the gateway, does not answer.
     */
    async chargePayment(step: OrderStep<'payment'>): Promise<PaymentOutcome> {
      const { nowAt, lookups = 0, ...order } = step;
      failpoint('before_opening');
      const opened = await openOrFindAttempt(deps, order, nowAt);
      if (opened.kind === 'refused') return opened.outcome;
      if (opened.kind === 'settled') {
        // The process that settled the attempt may have died before it delivered the events.
        await deps.wakeStream(streamOf(opened.intent));
        return opened.outcome;
      }
      if (opened.kind === 'open') throw new Error(`${order.intentId}: no attempt was opened`);
      const { intent, attempt, isFresh } = opened;
      failpoint('after_opening');
      const limits = {
        stopAt: sendDeadline(deps, lookups),
        lookups,
        realNowAt: nowAt,
        isFresh,
        isVoided: isPayerGone(attempt, intent.checkoutExpiresAt, nowAt),
        ...(await presentPayerOf(deps, attempt, {
          nowAt,
          savesMethod: intent.tokenise,
          isSuperseded: false,
        })),
      };
      const settlement = await collect(deps, attempt, intent, limits);
      failpoint('before_settling_commits');
      const outcome = await settlePayment(deps.db, attempt, settlement, nowAt);
      failpoint('after_settling');
      await watchUnproven(deps.orders, attempt, settlement);
      if (outcome.kind !== 'pending') await deps.wakeStream(streamOf(intent));
      return outcome;
    },
  };
}

/** Redeems the token after all other checks, so that a refused order does not use up its token. */
async function openOrFindAttempt(
  deps: ChargingDeps,
  order: PaymentOrder,
  nowAt: number,
): Promise<PaymentTurn> {
  const found = await lookAtPayment(deps.db, order, nowAt);
  if (found.kind !== 'open') return found;
  if (!order.token) return openPaymentAttempt(deps.db, order, null, nowAt);
  const { merchantId, token } = order;
  const { customerId } = found.intent;
  const redeemed = await redeemToken(deps, {
    ...token,
    merchantId,
    customerId,
    verify: false,
    nowAt,
  });
  if (redeemed.kind === 'refused') {
    return { kind: 'refused', outcome: { kind: 'declined', errorCode: redeemed.errorCode } };
  }
  return openPaymentAttempt(deps.db, order, redeemed.paymentMethodId, nowAt);
}
