/**
 * Life of a refund: CREATED (nothing left the process) → SENDING → SUCCEEDED or REFUSED; UNKNOWN is
 * sent again under the same key until it is decided. REFUSED gave nothing back.
 */
export const REFUND_STATES = ['CREATED', 'SENDING', 'UNKNOWN', 'SUCCEEDED', 'REFUSED'] as const;
export type RefundState = (typeof REFUND_STATES)[number];

/** The key the gateway sees on every send of one refund. */
export function refundKey(refundId: string): string {
  return `refund:${refundId}`;
}
