import type { Checkout } from '../../../db/repositories/checkout-sessions.ts';
import { intentEvent, subscriptionEvent } from '../../../domain/subscription/change.ts';
import type { EventDraft } from '../../../domain/events.ts';
import { CARD_TRIES_MAX } from '../shared/limits.ts';

/**
 * Where a checkout stands. It has no state of its own: it follows from the subscription.
 * `processing`: a payment's outcome is not known yet. `locked`: too many cards were declined.
 */
export type CheckoutStage = 'open' | 'locked' | 'processing' | 'done' | 'expired' | 'cancelled';

/** The present in the subscription's own time: its test clock's where there is one. */
export function businessNow(checkout: Checkout, realNowAt: number): number {
  return checkout.clockReachedAt ?? realNowAt;
}

/** `nowAt` is business time. Rule: D-§4. */
export function stageOf({ state, tries }: Checkout, nowAt: number): CheckoutStage {
  if (state.status === 'CREATED') {
    if (state.openAttempt !== null) return 'processing';
    if (nowAt >= state.checkoutExpiresAt) return 'expired';
    return tries >= CARD_TRIES_MAX ? 'locked' : 'open';
  }
  if (state.status === 'ENDED') {
    // Cancelled while a payment was on its way: it may still go through.
    if (state.openAttempt !== null) return 'processing';
    if (state.endReason === 'checkout_expired') return 'expired';
    // Nothing was ever paid or tried out.
    if (state.anchorAt === null) return 'cancelled';
  }
  return 'done';
}

/** The event of the page being opened for the first time. Rule: D-51. */
export function openedEvent({ state }: Checkout, nowAt: number): EventDraft {
  return state.owed === null
    ? subscriptionEvent('subscription.checkout_opened', state, nowAt)
    : intentEvent('intent.checkout_opened', state.owed.intentId, nowAt, 'CREATED');
}
