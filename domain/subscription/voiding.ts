import { awaitsPayer } from './authentication.ts';
import { cancelAt } from './state.ts';
import type { SubscriptionState } from './state.ts';

/**
 * A voided attempt is not sent any more. If the gateway has its charge already, the charge counts; else the attempt
 * is settled as declined.
 */

/**
 * True if the open attempt must not be sent any more: the subscription ended, ends with its period, is or was paused,
 * or its method was replaced (but see {@link isSuperseded}).
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
