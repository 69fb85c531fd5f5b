import type { Db } from '../db/client.ts';
import { streamOf } from '../db/repositories/intent-events.ts';
import {
  lookAtPayment,
  openPaymentAttempt,
  settlePayment,
} from '../db/repositories/payment-charges.ts';
import type { PaymentTurn } from '../db/repositories/payment-charges.ts';
import type { PaymentOrder, PaymentOutcome } from '../domain/payment-intent.ts';
import type { PaymentGateway } from '../gateways/port.ts';
import { failpoint } from '../runtime/failpoints.ts';
import type { ChargingDeps } from './charging.ts';
import { collect, sendsUntil } from './gateway-exchange.ts';
import type { SendBudgetDeps } from './gateway-exchange.ts';
import { watchUnproven } from './late-charges.ts';
import { redeemToken } from './redeem-token.ts';

export interface PaymentDeps extends SendBudgetDeps {
  db: Db;
  gateway: PaymentGateway;
  /** Asks for a stream's events to be delivered soon. Never throws. */
  wakeStream(stream: { merchantId: string; streamId: string }): Promise<void>;
}

/** One charge that is not a cycle. */
export function createPaymentActivities(deps: PaymentDeps & ChargingDeps) {
  return {
    /**
     * Carries an order one step on: opens its attempt, or finds the one it opened before, and sends or
     * asks about it. However often it is run, in whatever order processes die, an order is charged
     * once, a decline stays a decline, and while one try is undecided no other is opened. `pending`:
     * call again later. Throws, retryably, when the database or, before anything is charged, the
     * gateway does not answer. `nowAt` is real time, `lookups` how often it was asked in vain. Rules: D-35, D-36, D-40, D-41.
     */
    async chargePayment(
      input: PaymentOrder & { nowAt: number; lookups?: number },
    ): Promise<PaymentOutcome> {
      const { nowAt, lookups = 0, ...order } = input;
      const limits = { stopAt: sendsUntil(deps), lookups };
      failpoint('before_opening');
      const turn = await takeTurn(deps, order, nowAt);
      if (turn.kind === 'refused') return turn.outcome;
      if (turn.kind === 'settled') {
        // The process that settled it may have died before this.
        await deps.wakeStream(streamOf(turn.intent));
        return turn.outcome;
      }
      if (turn.kind === 'open') throw new Error(`${order.intentId}: nothing was opened`);
      const { intent, attempt } = turn;
      failpoint('after_opening');
      const settlement = await collect(deps, attempt, intent.subscriptionId, limits);
      failpoint('before_settling_commits');
      const outcome = await settlePayment(deps.db, attempt, settlement, nowAt);
      failpoint('after_settling');
      await watchUnproven(deps.payments, attempt, settlement);
      if (outcome.kind !== 'pending') await deps.wakeStream(streamOf(intent));
      return outcome;
    },
  };
}

/** What may be known without the card is looked at first: no token is used up for nothing. */
async function takeTurn(
  deps: PaymentDeps,
  order: PaymentOrder,
  nowAt: number,
): Promise<PaymentTurn> {
  const turn = await lookAtPayment(deps.db, order, nowAt);
  if (turn.kind !== 'open') return turn;
  if (!order.token) return openPaymentAttempt(deps.db, order, null, nowAt);
  const { merchantId, token } = order;
  const { customerId } = turn.intent;
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
