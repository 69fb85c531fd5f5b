import type { ErrorCode } from './errors.ts';
import type { CardToken } from './payment-intent.ts';

export const SETUP_METHOD_STATUSES = ['CREATED', 'SUCCESS', 'FAILED', 'CANCELLED'] as const;
export type SetupMethodStatus = (typeof SETUP_METHOD_STATUSES)[number];

/** Returns the status at `nowAt`. A session that was not completed in time is CANCELLED, although its row is not. */
export function setupMethodStatusAt(
  session: { status: SetupMethodStatus; expiresAt: number },
  nowAt: number,
): SetupMethodStatus {
  return session.status === 'CREATED' && nowAt >= session.expiresAt ? 'CANCELLED' : session.status;
}

export interface SetupMethodRef {
  merchantId: string;
  setupMethodId: string;
}

export interface SetupOrder extends SetupMethodRef {
  token: CardToken;
}

/** The outcome of an order to save a card. After any outcome except `pending`, a repeat has the same outcome. */
export type SetupOutcome =
  | { kind: 'saved'; paymentMethodId: string }
  | { kind: 'declined'; errorCode: string }
  | { kind: 'refused'; code: ErrorCode; message: string }
  /** Not decided yet. A later repeat of the order returns the outcome. */
  | { kind: 'pending' };
