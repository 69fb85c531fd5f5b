import { awaitsPayer } from './authentication.ts';
import { cancelAt } from './state.ts';
import type { SubscriptionState } from './state.ts';

/**
 * A voided attempt is not sent any more. If the gateway has its charge already, the charge counts; else the attempt
 * is settled as declined.
 */

/**
 * True if the charge of the open attempt must not be sent any more, for one of these reasons: the subscription has
 * ended, is paused, or ends with its period; the subscription was paused after the attempt was opened; the payer has
 * replaced the payment method. An attempt that waits for the payer is not voided by a new method: the caller checks
 * {@link isSuperseded}, because such an attempt is declined under another code.
 */
export function isVoided(state: SubscriptionState): boolean {
  const { status, openAttempt } = state;
  if (status === 'ENDED' || status === 'PAUSED' || cancelAt(state) !== null) return true;
  if (openAttempt === null) return false;
  if (openAttempt.wasPaused) return true;
  return !awaitsPayer(state) && isSuperseded(state);
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
