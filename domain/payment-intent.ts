import type { RefusalReason } from './errors.ts';

/** Statuses of a payment intent. CANCELLED is final. REFUNDED changes only if a refund fails later. */
export const INTENT_STATUSES = [
  'CREATED',
  'PENDING',
  'SUCCESS',
  'FAILED',
  'CANCELLED',
  'REFUNDED',
  'PARTIALLY_REFUNDED',
] as const;
export type IntentStatus = (typeof INTENT_STATUSES)[number];

/** `one_time`: of a subscription's method. `tokenised`: of a saved method alone. `hosted`: on a hosted page. */
export const INTENT_KINDS = ['cycle', 'one_time', 'tokenised', 'hosted'] as const;
export type IntentKind = (typeof INTENT_KINDS)[number];

/** The kinds in answers and events. `upfront`: the first cycle, if it has an `upfrontAmount`. */
export const SHOWN_INTENT_KINDS = ['cycle', 'upfront', 'one_time', 'tokenised', 'hosted'] as const;
export type ShownIntentKind = (typeof SHOWN_INTENT_KINDS)[number];

/** Returns the kind that answers and events show. `hasUpfrontAmount` is that of the intent's subscription. */
export function shownKind(
  { kind, cycleNumber }: { kind: IntentKind; cycleNumber: number | null },
  hasUpfrontAmount: boolean,
): ShownIntentKind {
  return kind === 'cycle' && cycleNumber === 1 && hasUpfrontAmount ? 'upfront' : kind;
}

export interface IntentRef {
  merchantId: string;
  intentId: string;
}

/** Returns the status at `nowAt`. A hosted payment that was not paid in time is CANCELLED, although its row is not. */
export function intentStatusAt(
  intent: { status: IntentStatus; checkoutExpiresAt: number | null },
  nowAt: number,
): IntentStatus {
  const isUnpaid = intent.status === 'CREATED' || intent.status === 'FAILED';
  const isExpired = intent.checkoutExpiresAt !== null && nowAt >= intent.checkoutExpiresAt;
  return isUnpaid && isExpired ? 'CANCELLED' : intent.status;
}

/**
 * SENDING (the gateway may have the charge) → an outcome. UNSENT (the gateway has no charge) is sent again; UNKNOWN is
 * looked up; REVIEW waits for a manual decision.
 */
export const ATTEMPT_STATES = [
  'SENDING',
  'SUCCEEDED',
  'DECLINED',
  'UNSENT',
  'UNKNOWN',
  'REVIEW',
] as const;
export type AttemptState = (typeof ATTEMPT_STATES)[number];

/**
 * `look_up`: the gateway's answer to a question after the send. `event`: the same, after the gateway's event about the
 * charge. `void`: the attempt was voided before it was charged.
 */
export const SETTLED_BY = ['gateway', 'event', 'look_up', 'person', 'void'] as const;
export type SettledBy = (typeof SETTLED_BY)[number];

export const ATTEMPT_TRIGGERS = [
  'checkout',
  'scheduled',
  'automatic_retry',
  'manual_retry',
  'new_method',
  'authentication',
  'one_time',
  'tokenised',
] as const;
export type AttemptTrigger = (typeof ATTEMPT_TRIGGERS)[number];

/** Returns the idempotency key at the gateway, the same on every send of one attempt. */
export function chargeKey(intentId: string, attemptNumber: number): string {
  return `charge:${intentId}:${attemptNumber}`;
}

/** Returns the number of the attempt whose key {@link chargeKey} made. */
export function attemptNumberOf(gatewayKey: string): number {
  return Number(gatewayKey.slice(gatewayKey.lastIndexOf(':') + 1));
}

/** The command id of every charge outside a cycle. Each has an intent of its own, within which the id is unique. */
export const DIRECT_COMMAND = 'direct';

/** The one-time token that the card form gave to a payer, and the session for which it can be redeemed. */
export interface CardToken {
  paymentToken: string;
  checkoutSessionId: string;
}

export interface PaymentOrder extends IntentRef {
  /** Null: charge the payment method in the intent's row, or continue the intent's open attempt. */
  token: CardToken | null;
}

/** The outcome of an order. After `succeeded` or `declined`, a repeat has the same outcome. */
export type PaymentOutcome =
  | { kind: 'succeeded' }
  | { kind: 'declined'; errorCode: string }
  | ({ kind: 'refused' } & RefusalReason)
  /** Not decided yet. A later repeat of the order returns the outcome. `isUnsent`: it could not be sent yet. */
  | { kind: 'pending'; needsPerson?: true; isUnsent?: true };
