import type { ErrorCode } from './errors.ts';
import type { CardToken } from './payment-intent.ts';

/** Rule: D-§7. */
export const SETUP_METHOD_STATUSES = ['CREATED', 'SUCCESS', 'FAILED', 'CANCELLED'] as const;
export type SetupMethodStatus = (typeof SETUP_METHOD_STATUSES)[number];

/**
 * The status at `nowAt`: a session that nobody completed in time is over, whatever its row says. A
 * declined card leaves it open, so FAILED is a session whose tries are used up.
 */
export function setupMethodStatusAt(
  session: { status: SetupMethodStatus; expiresAt: number },
  nowAt: number,
): SetupMethodStatus {
  return session.status === 'CREATED' && nowAt >= session.expiresAt ? 'CANCELLED' : session.status;
}

/** How everything names a setup session. Rule: D-21. */
export interface SetupMethodRef {
  merchantId: string;
  setupMethodId: string;
}

export type SetupOrder = SetupMethodRef & CardToken;

/** What asking to save a card came to; the same order, repeated, comes to the same. */
export type SetupOutcome =
  | { kind: 'saved'; paymentMethodId: string }
  | { kind: 'declined'; errorCode: string }
  | { kind: 'refused'; code: ErrorCode; message: string }
  /** Not decided yet: the same order finds out later. */
  | { kind: 'pending' };
