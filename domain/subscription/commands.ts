import type { Currency } from '../currencies.ts';
import type { IntervalUnit } from '../calendar.ts';
import type { Orderer } from './actor.ts';
import type { SubscriptionStatus } from './status.ts';

/** A command to a subscription. A retry repeats the caller's `commandId`, so that the command is executed once. */
export type Command =
  | EditCommand
  | CancelCommand
  | PauseCommand
  | UnpauseCommand
  | TokenCommand
  /** `resume` withdraws a cancellation that would end the subscription with its period. */
  | (BaseCommand & { kind: 'resume' })
  | (BaseCommand & { kind: 'manualRetry' })
  /** The payer is on the page of `checkoutSessionId` and wants to confirm the owed payment with the bank. */
  | (BaseCommand & { kind: 'authenticatePayment'; checkoutSessionId: string });

interface BaseCommand {
  commandId: string;
  /** Absent: the merchant, or the payer if the command has a card's token or is `authenticatePayment`. */
  actor?: Orderer | undefined;
}

export interface EditCommand extends BaseCommand {
  kind: 'edit';
  newAmountMinor?: number | undefined;
  /** The currency's row with the limits of `CURRENCY_LIMITS_FILE`. Absent if the checked-in table applies. */
  currencyRow?: Currency | undefined;
  newCycleCount?: number | undefined;
  newNextPaymentAt?: number | undefined;
  interval?: IntervalUnit | undefined;
  intervalCount?: number | undefined;
}

export interface CancelCommand extends BaseCommand {
  kind: 'cancel';
  /** `checkout_cancelled`: the merchant cancelled the first payment's intent, not the subscription. */
  reason: 'cancelled' | 'checkout_cancelled';
  /** True: it ends with the paid period or the trial. Absent: at once. */
  atPeriodEnd?: boolean | undefined;
}

export interface PauseCommand extends BaseCommand {
  kind: 'pause';
  /** The instant of the pause's end and of the next charge. Absent: the pause lasts until an unpause. */
  resumeAt?: number | undefined;
}

export interface UnpauseCommand extends BaseCommand {
  kind: 'unpause';
  newNextPaymentAt: number;
}

/** The payer has completed the card form. The token is redeemed once, before the change, for `checkoutSessionId`. */
export type TokenCommand = Tokenised<'completeCheckout'> | Tokenised<'replacePaymentMethod'>;

interface Tokenised<Kind> extends BaseCommand {
  kind: Kind;
  paymentToken: string;
  checkoutSessionId: string;
}

export type CommandKind = Command['kind'];

/** The result of a command, stored under the command's id, so that a retry returns the same result. */
export type CommandResult =
  | { kind: 'done' }
  | {
      kind: 'manualRetry';
      success: boolean;
      minManualRetryAt: number | null;
      status: Extract<SubscriptionStatus, 'ACTIVE' | 'UNPAID' | 'ENDED'>;
      errorCode: string | null;
    }
  | { kind: 'checkout'; outcome: 'paid' | 'saved' | 'declined'; errorCode: string | null };
