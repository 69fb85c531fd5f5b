import { eq } from 'drizzle-orm';
import { limitRefusal } from '../../../domain/card-limits.ts';
import type { ErrorCode } from '../../../domain/errors.ts';
import { DIRECT_COMMAND, intentStatusAt } from '../../../domain/payment-intent.ts';
import type { PaymentOrder, PaymentOutcome } from '../../../domain/payment-intent.ts';
import type { RefundOutcome, RefundRef } from '../../../domain/refund.ts';
import { intentEvent } from '../../../domain/subscription/change.ts';
import type { Db } from '../../client.ts';
import { paymentAttempts } from '../../schema/payments.ts';
import type { paymentIntents } from '../../schema/payments.ts';
import {
  CardLimitReached,
  insertAttempt,
  setPending,
  settleAttempt,
} from '../subscriptions/attempts.ts';
import type { Attempt } from '../subscriptions/attempts.ts';
import type { Settlement } from '../../../domain/settlement.ts';
import { businessNow } from '../subscriptions/business-time.ts';
import { appendIntentEvent } from './events.ts';
import { attemptsOf, findIntent, lockIntent, withdrawPayment } from './orders.ts';
import { setMethodLive } from '../customers/payment-methods.ts';
import { findRefund, refundOutcomeOf } from './refunds.ts';

type Intent = typeof paymentIntents.$inferSelect;

/** `goOn`: continue the undecided attempt. `open`: open one. `refused`: charge nothing. */
export type PaymentTurn =
  | { kind: 'settled'; intent: Intent; outcome: PaymentOutcome }
  | { kind: 'refused'; outcome: PaymentOutcome }
  | { kind: 'goOn'; intent: Intent; attempt: Attempt; isFresh: boolean }
  | { kind: 'open'; intent: Intent };

/** Returns the next step of the caller for an order. Changes and locks nothing. `nowAt` is real time. */
export async function lookAtPayment(
  db: Db,
  order: PaymentOrder,
  nowAt: number,
): Promise<PaymentTurn> {
  const found = await findIntent(db, order.merchantId, order.intentId);
  if (!found) return refused('resource_not_found', 'There is no such payment.');
  return turnOf(found, await attemptsOf(db, order), order, nowAt);
}

/**
 * Opens the order's attempt, if it may be charged and the limits of its card allow it. Null `paymentMethodId`: the
 * intent's.
 */
export async function openPaymentAttempt(
  db: Db,
  order: PaymentOrder,
  paymentMethodId: string | null,
  nowAt: number,
): Promise<PaymentTurn> {
  try {
    return await openOrFind(db, order, paymentMethodId, nowAt);
  } catch (error) {
    if (!(error instanceof CardLimitReached)) throw error;
    // A payer may use another card.
    if (order.token) {
      return { kind: 'refused', outcome: { kind: 'declined', errorCode: 'limit_exceeded' } };
    }
    // Or a sweep would charge it as soon as the limits allow.
    await withdrawPayment(db, order);
    return { kind: 'refused', outcome: { kind: 'refused', ...limitRefusal(error.limit) } };
  }
}

function openOrFind(
  db: Db,
  order: PaymentOrder,
  paymentMethodId: string | null,
  nowAt: number,
): Promise<PaymentTurn> {
  return db.transaction(async (tx): Promise<PaymentTurn> => {
    const intent = await lockIntent(tx, order);
    if (!intent) return refused('resource_not_found', 'There is no such payment.');
    const attempts = await attemptsOf(tx, order);
    const turn = turnOf(intent, attempts, order, nowAt);
    if (turn.kind !== 'open') return turn;
    const methodId = paymentMethodId ?? intent.paymentMethodId;
    if (methodId === null) throw new Error(`${intent.id} has no payment method`);
    const attempt = await insertAttempt(tx, {
      merchantId: intent.merchantId,
      intentId: intent.id,
      attemptNumber: attempts.length + 1,
      commandId: commandOf(intent, order),
      sessionId: order.token?.checkoutSessionId ?? null,
      trigger: intent.kind === 'one_time' || intent.kind === 'tokenised' ? intent.kind : 'checkout',
      paymentMethodId: methodId,
      amountMinor: intent.amountMinor,
      currency: intent.currency,
      description: intent.description ?? intent.receiptId,
      createdAt: await businessNow(tx, intent, nowAt),
    });
    if (!attempt) throw new Error(`${intent.id} has an attempt ${attempts.length + 1}`);
    await setPending(tx, attempt);
    return { kind: 'goOn', intent, attempt, isFresh: true };
  });
}

/**
 * Records the outcome of an attempt in one transaction, with intent, event and method. An unknown outcome
 * and a review change only the attempt. A settled attempt returns its first outcome. `nowAt` is real time.
 */
export async function settlePayment(
  db: Db,
  attempt: Attempt,
  settlement: Settlement,
  nowAt: number,
): Promise<PaymentOutcome> {
  const ref = { merchantId: attempt.merchantId, intentId: attempt.intentId };
  return db.transaction(async (tx): Promise<PaymentOutcome> => {
    const intent = await lockIntent(tx, ref);
    if (!intent) throw new Error(`no intent ${ref.intentId}`);
    const [current] = await tx
      .select()
      .from(paymentAttempts)
      .where(eq(paymentAttempts.gatewayKey, attempt.gatewayKey));
    if (!current) throw new Error(`no attempt ${attempt.id}`);
    const known = outcomeOf(current);
    if (known) return known;
    const at = await businessNow(tx, intent, nowAt);
    const facts = await settleAttempt(tx, current, settlement, at);
    if (settlement.kind === 'unknown') return { kind: 'pending' };
    if (settlement.kind === 'unsent') return { kind: 'pending', isUnsent: true };
    if (settlement.kind === 'review') return { kind: 'pending', needsPerson: true };
    const isPaid = settlement.kind === 'succeeded';
    if (isPaid && intent.tokenise) {
      await setMethodLive(tx, intent.merchantId, attempt.paymentMethodId);
    }
    const errorCode = isPaid ? null : settlement.code;
    const draft = isPaid
      ? intentEvent('intent.success', intent.id, at, 'SUCCESS')
      : intentEvent('intent.failed', intent.id, at, 'FAILED', errorCode);
    await appendIntentEvent(tx, intent, draft, facts);
    return errorCode === null ? { kind: 'succeeded' } : { kind: 'declined', errorCode };
  });
}

/** Returns the outcome of a settled attempt; null while the attempt is undecided. */
function outcomeOf(attempt: Attempt): PaymentOutcome | null {
  if (attempt.state === 'SUCCEEDED') return { kind: 'succeeded' };
  if (attempt.state === 'DECLINED') {
    return { kind: 'declined', errorCode: attempt.errorCode ?? 'card_declined' };
  }
  return null;
}

/**
 * Returns the command id by which a repeat finds its attempt. Null for a hosted payment without a token, ordered by a
 * sweep, event or review.
 */
function commandOf(intent: Intent, { token }: PaymentOrder): string | null {
  return intent.kind === 'hosted' ? (token?.paymentToken ?? null) : DIRECT_COMMAND;
}

function turnOf(
  intent: Intent,
  attempts: readonly Attempt[],
  order: PaymentOrder,
  nowAt: number,
): PaymentTurn {
  if (intent.kind === 'cycle' || (order.token && intent.kind !== 'hosted')) {
    return refused('operation_not_allowed', 'This payment is not made on a page.');
  }
  const commandId = commandOf(intent, order);
  // Without a command id, the order continues the latest attempt.
  const own =
    commandId === null
      ? attempts.at(-1)
      : attempts.find((attempt) => attempt.commandId === commandId);
  if (own) {
    const outcome = outcomeOf(own);
    return outcome
      ? { kind: 'settled', intent, outcome }
      : { kind: 'goOn', intent, attempt: own, isFresh: false };
  }
  switch (intentStatusAt(intent, nowAt)) {
    case 'CREATED':
    case 'FAILED':
      if (commandId !== null) return { kind: 'open', intent };
      return refused('operation_not_allowed', 'The payment waits for its payer.');
    case 'CANCELLED':
      return refused('operation_not_allowed', 'The payment was cancelled, or its page expired.');
    // Also if no attempt is open any more: the attempts were read after the intent.
    case 'PENDING':
      return refused('payment_outcome_pending', 'The outcome of another try is not known yet.');
    case 'SUCCESS':
    case 'REFUNDED':
    case 'PARTIALLY_REFUNDED':
      return refused('operation_not_allowed', 'The payment has already succeeded.');
  }
}

function refused(code: ErrorCode, message: string): PaymentTurn {
  return { kind: 'refused', outcome: { kind: 'refused', code, message } };
}

/** Returns what the rows show of an order, for the callers that wait for its outcome. */
export function orderRows(db: Db) {
  return {
    async payment(order: PaymentOrder, nowAt: number): Promise<PaymentOutcome | null> {
      const turn = await lookAtPayment(db, order, nowAt);
      if (turn.kind === 'settled' || turn.kind === 'refused') return turn.outcome;
      const waitsForPayer =
        turn.kind === 'goOn' && turn.attempt.state === 'UNKNOWN' && turn.attempt.payerUrl !== null;
      return waitsForPayer ? { kind: 'pending' } : null;
    },
    async refund({ merchantId, refundId }: RefundRef): Promise<RefundOutcome | null> {
      const refund = await findRefund(db, merchantId, refundId);
      if (refund?.state === 'PENDING') return { kind: 'pending', isAccepted: true };
      return refund && refundOutcomeOf(refund);
    },
    setupMethod: async () => null,
  };
}
