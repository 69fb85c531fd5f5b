import type { Currency } from '../currencies.ts';
import type { IntervalUnit } from '../calendar.ts';
import type { Orderer } from './actor.ts';
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

/** The part that every command has. */
interface Order {
  commandId: string;
  /** Absent: the merchant, or for a card the payer. Absent in commands of earlier releases, too. */
  actor?: Orderer | undefined;
}

export interface EditCommand extends Order {
  kind: 'edit';
  newAmountMinor?: number | undefined;
  /** The currency's row with the operator's limits. Absent if the checked-in table applies. Rule: D-03. */
  currencyRow?: Currency | undefined;
  newCycleCount?: number | undefined;
  newNextPaymentAt?: number | undefined;
  interval?: IntervalUnit | undefined;
  intervalCount?: number | undefined;
}

export interface CancelCommand extends Order {
  kind: 'cancel';
  /** `checkout_cancelled`: the merchant cancelled the first payment's intent, not the subscription. */
  reason: 'cancelled' | 'checkout_cancelled';
  /** The subscription ends with the period that is paid, or with its trial. Absent: at once. */
  atPeriodEnd?: boolean | undefined;
}

export interface PauseCommand extends Order {
  kind: 'pause';
  /** The pause ends then, as an unpause with that date. Absent: it ends with an unpause. */
  resumeAt?: number | undefined;
}

/** Withdraws a cancellation at the end of the period. */
export interface ResumeCommand extends Order {
  kind: 'resume';
}

export interface UnpauseCommand extends Order {
  kind: 'unpause';
  newNextPaymentAt: number;
}

export interface ManualRetryCommand extends Order {
  kind: 'manualRetry';
}

/** The payer completed the card form. The token can be redeemed once, for `checkoutSessionId` only. */
export interface CompleteCheckoutCommand extends Order {
  kind: 'completeCheckout';
  paymentToken: string;
  checkoutSessionId: string;
}

export interface ReplacePaymentMethodCommand extends Order {
  kind: 'replacePaymentMethod';
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
