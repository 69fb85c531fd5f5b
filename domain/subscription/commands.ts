import type { IntervalUnit } from '../calendar.ts';
import type { SubscriptionStatus } from './state.ts';

/**
 * What can be asked of a subscription. `commandId` is chosen by the caller and stays the same when
 * the call is repeated: a command is carried out once. Rule: D-32.
 */
export type Command =
  | EditCommand
  | CancelCommand
  | PauseCommand
  | UnpauseCommand
  | ManualRetryCommand
  | CompleteCheckoutCommand
  | ReplacePaymentMethodCommand;

export interface EditCommand {
  kind: 'edit';
  commandId: string;
  newAmountMinor?: number | undefined;
  newCycleCount?: number | undefined;
  newNextPaymentAt?: number | undefined;
  interval?: IntervalUnit | undefined;
  intervalCount?: number | undefined;
}

export interface CancelCommand {
  kind: 'cancel';
  commandId: string;
  /** `checkout_cancelled` when the first payment's intent was cancelled instead. */
  reason: 'cancelled' | 'checkout_cancelled';
}

export interface PauseCommand {
  kind: 'pause';
  commandId: string;
}

export interface UnpauseCommand {
  kind: 'unpause';
  commandId: string;
  newNextPaymentAt: number;
}

export interface ManualRetryCommand {
  kind: 'manualRetry';
  commandId: string;
}

/** The payer came back from the card form with a one-time token bound to `checkoutSessionId`. */
export interface CompleteCheckoutCommand {
  kind: 'completeCheckout';
  commandId: string;
  paymentToken: string;
  checkoutSessionId: string;
}

export interface ReplacePaymentMethodCommand {
  kind: 'replacePaymentMethod';
  commandId: string;
  paymentToken: string;
  checkoutSessionId: string;
}

export type CommandKind = Command['kind'];

/** What a carried-out command answers; stored under its id, so that a repeat gets the same. */
export type CommandResult =
  | { kind: 'done' }
  | ManualRetryResult
  | { kind: 'checkout'; outcome: 'paid' | 'saved' | 'declined'; errorCode: string | null };

/** Rule: IF-4.9. */
export interface ManualRetryResult {
  kind: 'manualRetry';
  success: boolean;
  minManualRetryAt: number | null;
  status: Extract<SubscriptionStatus, 'ACTIVE' | 'UNPAID' | 'ENDED'>;
  errorCode: string | null;
}
