import type { ErrorCode } from './errors.ts';
import type { CardToken } from './payment-intent.ts';

/** Statuses of a setup session. */
export const SETUP_METHOD_STATUSES = ['CREATED', 'SUCCESS', 'FAILED', 'CANCELLED'] as const;
export type SetupMethodStatus = (typeof SETUP_METHOD_STATUSES)[number];

/**
 * Returns the status at `nowAt`. If a session was not completed in time, its status is CANCELLED, although
 * its row still has CREATED. A declined card leaves the session open. After `CARD_TRIES_MAX` declined cards (5 for a
 * live merchant) the row has FAILED.
 */
export function setupMethodStatusAt(
  session: { status: SetupMethodStatus; expiresAt: number },
  nowAt: number,
): SetupMethodStatus {
  return session.status === 'CREATED' && nowAt >= session.expiresAt ? 'CANCELLED' : session.status;
}

/** Identifies a setup session. */
export interface SetupMethodRef {
  merchantId: string;
  setupMethodId: string;
}

export type SetupOrder = SetupMethodRef & CardToken;

/** The outcome of an order to save a card. After any outcome except `pending`, a repeat has the same outcome. */
export type SetupOutcome =
  | { kind: 'saved'; paymentMethodId: string }
  | { kind: 'declined'; errorCode: string }
  | { kind: 'refused'; code: ErrorCode; message: string }
  /** Not decided yet. A later repeat of the order returns the outcome. */
  | { kind: 'pending' };
