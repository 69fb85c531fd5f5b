import type { Currency } from '../currencies.ts';
import type { IntervalUnit } from '../calendar.ts';
import type { SubscriptionStatus } from './state.ts';

/**
 * A command to a subscription. The caller chooses `commandId` and repeats it in a retry, so that the command
 * is executed once. Rule: D-32.
 */
export type Command =
  | EditCommand
  | CancelCommand
  | PauseCommand
  | UnpauseCommand
  | ResumeCommand
  | ManualRetryCommand
  | CompleteCheckoutCommand
  | ReplacePaymentMethodCommand;

export interface EditCommand {
  kind: 'edit';
  commandId: string;
  newAmountMinor?: number | undefined;
  /** The currency's row with the operator's limits. Absent if the checked-in table applies. Rule: D-03. */
  currencyRow?: Currency | undefined;
  newCycleCount?: number | undefined;
  newNextPaymentAt?: number | undefined;
  interval?: IntervalUnit | undefined;
  intervalCount?: number | undefined;
}

export interface CancelCommand {
  kind: 'cancel';
  commandId: string;
  /** `checkout_cancelled`: the merchant cancelled the first payment's intent, not the subscription. */
  reason: 'cancelled' | 'checkout_cancelled';
  /** The subscription ends with the period that is paid, or with its trial. Absent: at once. */
  atPeriodEnd?: boolean | undefined;
}

export interface PauseCommand {
  kind: 'pause';
  commandId: string;
  /** The pause ends then, as an unpause with that date. Absent: it ends with an unpause. */
  resumeAt?: number | undefined;
}

/** Withdraws a cancellation at the end of the period. */
export interface ResumeCommand {
  kind: 'resume';
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

/** The payer completed the card form. The token can be redeemed once, for `checkoutSessionId` only. */
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

/** The result of a command, stored under the command's id, so that a retry returns the same result. */
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
