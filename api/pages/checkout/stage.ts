import type { Checkout } from '../../../db/repositories/checkouts/sessions.ts';
import { intentEvent, subscriptionEvent } from '../../../domain/subscription/change.ts';
import { isAtBank } from '../shared/bank.tsx';
import type { EventDraft } from '../../../domain/events.ts';
import { CARD_TRIES_MAX } from '../../../domain/payment-method.ts';

/**
 * Computed from the state, never stored. `processing`: the outcome of a payment is unknown. `atBank`: the bank waits
 * for the payer. `locked`: too many cards were declined.
 */
export type CheckoutStage =
  | 'open'
  | 'locked'
  | 'processing'
  | 'atBank'
  | 'done'
  | 'expired'
  | 'cancelled';

/** Returns the subscription's business time: the time of its test clock if it has one, else real time. */
export function businessNow(checkout: Checkout, realNowAt: number): number {
  return checkout.clockReachedAt ?? realNowAt;
}

/** Returns the stage of the checkout at `nowAt`, the result of {@link businessNow}. */
export function stageOf({ state, tries, mode, attempt }: Checkout, nowAt: number): CheckoutStage {
  if (state.status === 'CREATED') {
    if (state.openAttempt !== null) return isAtBank(attempt) ? 'atBank' : 'processing';
    if (nowAt >= state.checkoutExpiresAt) return 'expired';
    return tries >= CARD_TRIES_MAX[mode] ? 'locked' : 'open';
  }
  if (state.status === 'ENDED') {
    // If an attempt is open, the subscription was cancelled during a payment, which may still succeed.
    if (state.openAttempt !== null) return 'processing';
    if (state.endReason === 'checkout_expired') return 'expired';
    // `anchorAt` is null until a cycle is paid or a trial begins.
    if (state.anchorAt === null) return 'cancelled';
  }
  return 'done';
}

export function openedEvent({ state }: Checkout, nowAt: number): EventDraft {
  return state.owed === null
    ? { ...subscriptionEvent('subscription.checkout_opened', state, nowAt), actor: 'payer' }
    : intentEvent('intent.checkout_opened', state.owed.intentId, nowAt, 'CREATED');
}
