/**
 * CREATED (nothing was sent) → SENDING → SUCCEEDED or REFUSED. UNKNOWN is sent again under its key; PENDING is with
 * the gateway. REFUSED is final: no money was refunded, or a SUCCEEDED refund failed later.
 */
export const REFUND_STATES = [
  'CREATED',
  'SENDING',
  'UNKNOWN',
  'PENDING',
  'REVIEW',
  'SUCCEEDED',
  'REFUSED',
] as const;
export type RefundState = (typeof REFUND_STATES)[number];

/** Returns the idempotency key at the gateway, the same on every send of one refund. */
export function refundKey(refundId: string): string {
  return `refund:${refundId}`;
}

export interface RefundRef {
  merchantId: string;
  refundId: string;
}

/** The outcome of a refund. `refused`: no money was refunded, and the amount may be refunded by a new refund. */
export type RefundOutcome =
  | { kind: 'refunded' }
  | { kind: 'refused'; message: string }
  /** Not decided yet: PENDING at the gateway (`isAccepted`), in review (`needsPerson`), not sent (`isUnsent`), or sent. */
  | { kind: 'pending'; needsPerson?: true; isAccepted?: true; isUnsent?: true };
