import { isAuthentication } from './authentication.ts';
import { cancelAt } from './state.ts';
import type { SubscriptionState } from './state.ts';

/**
 * A voided attempt is not sent any more. If the gateway has its charge already, the charge counts; else the attempt
 * is settled as declined.
 */

/**
 * True if the charge of the open attempt must not be sent any more: the subscription is over, paused, or cancelled for
 * the end of its period; a pause came after the attempt was opened, also one that is over; or the payer has replaced
 * the payment method. If the payer has to confirm the attempt, {@link isSuperseded} voids it under another code.
 * Rules: D-§4, D-33.
 */
export function isVoided(state: SubscriptionState): boolean {
  const { status, openAttempt } = state;
  if (status === 'ENDED' || status === 'PAUSED' || cancelAt(state) !== null) return true;
  if (openAttempt === null) return false;
  if (openAttempt.wasPaused) return true;
  // An earlier release did not set `wasPaused`. A payer confirms only an attempt in UNPAID, and no unpause leads there.
  return isAuthentication(openAttempt) ? status !== 'UNPAID' : isSuperseded(state);
}

/** True if the payer has replaced the payment method since the open attempt was opened. Rule: D-33. */
export function isSuperseded({ openAttempt, paymentMethodId }: SubscriptionState): boolean {
  // Without a saved method, the attempt is that of the checkout.
  return (
    openAttempt !== null &&
    paymentMethodId !== null &&
    openAttempt.paymentMethodId !== paymentMethodId
  );
}
