import type { OpenAttempt, SubscriptionState } from './state.ts';

/**
 * If the bank refuses a charge because the payer is absent, the payer can confirm the owed payment with the
 * bank. Rules: D-30, D-33.
 */

/**
 * Longest time for the payer's confirmation, in ms of real time. The first look-up after this time withdraws
 * the charge, about 22 min after the charge was sent.
 */
export const AUTHENTICATION_MS = 20 * 60_000;

/** Maximum number of attempts with the trigger `authentication` on one cycle. */
const AUTHENTICATIONS_MAX = 10;

/** True if the attempt is one that the payer has to confirm with the bank. */
export function isAuthentication({ trigger }: Pick<OpenAttempt, 'trigger'>): boolean {
  return trigger === 'authentication';
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
    (owed.authentications ?? 0) < AUTHENTICATIONS_MAX
  );
}
