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
] as const;
export type AttemptTrigger = (typeof ATTEMPT_TRIGGERS)[number];

/** The key the gateway sees on every send of one attempt, resends included. */
export function chargeKey(intentId: string, attemptNumber: number): string {
  return `charge:${intentId}:${attemptNumber}`;
}
