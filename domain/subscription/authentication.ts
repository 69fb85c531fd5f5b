import type { SubscriptionState } from './state.ts';

/**
 * The bank may ask the payer to confirm a charge: at once if the payer is on a hosted page, else later, if the bank
 * refused the charge because the payer was absent.
 */

/**
 * Longest time for the payer's confirmation, in ms of real time. The first look-up after it withdraws the charge,
 * about 22 min after it was sent. A page counts as open for the same time.
 */
export const AUTHENTICATION_MS = 20 * 60_000;

/** Maximum number of attempts with the trigger `authentication` on one cycle. */
const AUTHENTICATIONS_MAX = 10;

/** True if the bank waits until the payer confirms the charge of the open attempt. */
export function awaitsPayer({ openAttempt }: SubscriptionState): boolean {
  return openAttempt?.awaitsPayer === true;
}

/** True if the payer has replaced the payment method since the open attempt was opened. */
export function isSuperseded({ openAttempt, paymentMethodId }: SubscriptionState): boolean {
  // Without a saved method, the attempt is that of the checkout.
  return (
    openAttempt !== null &&
    paymentMethodId !== null &&
    openAttempt.paymentMethodId !== paymentMethodId
  );
}

/**
 * True if the payer can pay the owed cycle by a confirmation: the bank asked for one, the payment method is the same,
 * and fewer than 10 were begun for this cycle.
 */
export function needsAuthentication({ status, owed, openAttempt }: SubscriptionState): boolean {
  return (
    status === 'UNPAID' &&
    openAttempt === null &&
    owed !== null &&
    owed.retriesStopped &&
    owed.lastDeclineCode === 'authentication_required' &&
    owed.authentications < AUTHENTICATIONS_MAX
  );
}
