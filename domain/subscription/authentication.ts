import type { SubscriptionState } from './state.ts';

/**
 * The bank may ask the payer to confirm a charge. A payer who is on a hosted page confirms it at once. If the bank
 * refused the charge because the payer was absent, the payer can confirm the owed payment later.
 */

/**
 * Longest time for the payer's confirmation, in ms of real time after the bank has asked. The first look-up after this
 * time withdraws the charge, about 22 min after the charge was sent. A page that causes an attempt counts as open for
 * the same time.
 */
export const AUTHENTICATION_MS = 20 * 60_000;

/** Maximum number of attempts with the trigger `authentication` on one cycle. */
const AUTHENTICATIONS_MAX = 10;

/** True if the bank waits until the payer confirms the charge of the open attempt. */
export function awaitsPayer({ openAttempt }: SubscriptionState): boolean {
  return openAttempt?.awaitsPayer === true;
}

/**
 * True if the payer can pay the owed cycle by a confirmation: the bank has asked for a confirmation, the payer has not
 * replaced the payment method since, and the payer has begun fewer than 10 confirmations of this cycle.
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
