import type { ErrorCode } from './errors.ts';

/** Statuses of a payment intent. CANCELLED and REFUNDED are final. Rule: D-40. */
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

/**
 * What is owed: a billing cycle; a one-time charge of a subscription's method; a charge of a saved
 * method; a payment on a hosted page.
 */
export const INTENT_KINDS = ['cycle', 'one_time', 'tokenised', 'hosted'] as const;
export type IntentKind = (typeof INTENT_KINDS)[number];

/** How everything names an intent. Rule: D-21. */
export interface IntentRef {
  merchantId: string;
  intentId: string;
}

/**
 * The status at `nowAt`: a hosted payment that nobody made in time is over, whatever its row says.
 * Rules: D-40, D-41.
 */
export function intentStatusAt(
  intent: { status: IntentStatus; checkoutExpiresAt: number | null },
  nowAt: number,
): IntentStatus {
  const isUnpaid = intent.status === 'CREATED' || intent.status === 'FAILED';
  const isExpired = intent.checkoutExpiresAt !== null && nowAt >= intent.checkoutExpiresAt;
  return isUnpaid && isExpired ? 'CANCELLED' : intent.status;
}

/**
 * Life of one attempt: CREATED (nothing left the process) → SENDING → an outcome. UNKNOWN is asked
 * for until it is settled; REVIEW waits for a person.
 */
export const ATTEMPT_STATES = [
  'CREATED',
  'SENDING',
  'SUCCEEDED',
  'DECLINED',
  'UNKNOWN',
  'REVIEW',
] as const;
export type AttemptState = (typeof ATTEMPT_STATES)[number];

/** Why an attempt was made. */
export const ATTEMPT_TRIGGERS = [
  'checkout',
  'scheduled',
  'automatic_retry',
  'manual_retry',
  'new_method',
  'one_time',
  'tokenised',
] as const;
export type AttemptTrigger = (typeof ATTEMPT_TRIGGERS)[number];

/** The key the gateway sees on every send of one attempt, resends included. */
export function chargeKey(intentId: string, attemptNumber: number): string {
  return `charge:${intentId}:${attemptNumber}`;
}

/** What asks for a charge of a merchant's own: a one-time or a tokenised one has no other. */
export const DIRECT_COMMAND = 'direct';

/** What a payer brings back from the card form. */
export interface CardToken {
  paymentToken: string;
  checkoutSessionId: string;
}

export interface PaymentOrder extends IntentRef {
  /** Null: the merchant's charge of the method the intent names, or go on with what is open. */
  token: CardToken | null;
}

/** What asking for a payment came to; the same order, repeated, comes to the same. */
export type PaymentOutcome =
  | { kind: 'succeeded' }
  | { kind: 'declined'; errorCode: string }
  | { kind: 'refused'; code: ErrorCode; message: string }
  /** Not decided yet: the same order finds out later. */
  | { kind: 'pending'; needsPerson?: true };
