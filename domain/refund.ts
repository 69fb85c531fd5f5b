/**
 * Life of a refund: CREATED (nothing left the process) → SENDING → SUCCEEDED or REFUSED; UNKNOWN is
 * sent again under the same key until it is decided, REVIEW waits for a person. REFUSED gave nothing
 * back.
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

/** The key the gateway sees on every send of one refund. */
export function refundKey(refundId: string): string {
  return `refund:${refundId}`;
}

/** How everything names a refund. Rule: D-21. */
export interface RefundRef {
  merchantId: string;
  refundId: string;
}

/** What a refund came to. Refused: nothing was given back, and its amount is free again. */
export type RefundOutcome =
  | { kind: 'refunded' }
  | { kind: 'refused'; message: string }
  /** Not decided yet: it is carried on until it is. */
  | { kind: 'pending'; needsPerson?: true };
