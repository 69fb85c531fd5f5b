/**
 * States of a refund: CREATED (nothing was sent to the gateway) → SENDING → SUCCEEDED or REFUSED. An
 * UNKNOWN refund is sent again under the same key until it is decided. A refund in REVIEW waits for a
 * manual decision. REFUSED: no money was refunded.
 */
export const REFUND_STATES = [
  'CREATED',
  'SENDING',
  'UNKNOWN',
  'REVIEW',
  'SUCCEEDED',
  'REFUSED',
] as const;
export type RefundState = (typeof REFUND_STATES)[number];

/** The idempotency key at the gateway, the same on every send of one refund. */
export function refundKey(refundId: string): string {
  return `refund:${refundId}`;
}

/** Identifies a refund. Rule: D-21. */
export interface RefundRef {
  merchantId: string;
  refundId: string;
}

/**
 * The outcome of a refund. `refused`: no money was refunded, and the amount may be refunded by a new refund.
 */
export type RefundOutcome =
  | { kind: 'refunded' }
  | { kind: 'refused'; message: string }
  /** Not decided yet: the refund is being sent or is in manual review. */
  | { kind: 'pending'; needsPerson?: true };
