import { formatAmount } from './money.ts';
import type { IntentStatus } from './payment-intent.ts';

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

const PAID: readonly IntentStatus[] = ['SUCCESS', 'PARTIALLY_REFUNDED', 'REFUNDED'];

/**
 * Returns the amount that a new refund has, or why there is none. `claimedMinor`: the sum of the payment's refunds that are
 * not REFUSED. `wantedMinor`: null for all that is left.
 */
export function decideRefund(
  payment: { status: IntentStatus; amountMinor: number; currency: string },
  claimedMinor: number,
  wantedMinor: number | null,
): { amountMinor: number } | { refusal: string } {
  const { status, currency } = payment;
  if (!PAID.includes(status)) return { refusal: 'Only a successful payment can be refunded.' };
  const leftMinor = payment.amountMinor - claimedMinor;
  if (leftMinor <= 0) return { refusal: NOTHING_LEFT };
  const amountMinor = wantedMinor ?? leftMinor;
  if (amountMinor <= leftMinor) return { amountMinor };
  return { refusal: `No more than ${formatAmount(leftMinor, currency)} is left to refund.` };
}

export function statusAfterRefunds(amountMinor: number, refundedMinor: number): IntentStatus {
  if (refundedMinor === 0) return 'SUCCESS';
  return refundedMinor === amountMinor ? 'REFUNDED' : 'PARTIALLY_REFUNDED';
}

const NOTHING_LEFT = 'The whole payment is already refunded, or its refund is not finished yet.';

/** The reason of a refund that was voided before it was sent. */
export const VOIDED = 'It was withdrawn before it was sent.';

/** The message of a REFUSED refund without a reason. */
export const REFUSED_BY_GATEWAY = 'The gateway refused the refund.';
