import type { SubscriptionState } from './state.ts';

/** The bank may ask the payer to confirm a charge: on a hosted page at once, else after it has refused the charge. */

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

/** True if the bank refused the charge for a confirmation and the payer has begun fewer than 10 for this cycle. */
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
