import type { Checkout } from '../../../db/repositories/checkout-sessions.ts';
import type { CustomerDetails } from '../../../domain/customer.ts';
import { intentEvent, subscriptionEvent } from '../../../domain/subscription/change.ts';
import type { EventDraft } from '../../../domain/events.ts';
import type { DetailName } from '../shared/details-form.ts';

/**
 * Where a checkout stands. It has no state of its own: it follows from the subscription.
 * `processing`: a payment's outcome is not known yet.
 */
export type CheckoutStage = 'open' | 'processing' | 'done' | 'expired' | 'cancelled';

/** The present in the subscription's own time: its test clock's where there is one. */
export function businessNow(checkout: Checkout, realNowAt: number): number {
  return checkout.clockReachedAt ?? realNowAt;
}

/** `nowAt` is business time. Rule: D-§4. */
export function stageOf({ state }: Checkout, nowAt: number): CheckoutStage {
  if (state.status === 'CREATED') {
    if (state.openAttempt !== null) return 'processing';
    return nowAt >= state.checkoutExpiresAt ? 'expired' : 'open';
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

/** What is known of a payer before they type anything. */
export type KnownPayer = Pick<Checkout, 'customerDetails' | 'phoneNumberRequired'> & {
  /** Null without a customer. */
  readonly savedDetails: CustomerDetails | null;
};

/** What has to be asked of the payer before paying. Rule: D-11. */
export function missingDetails(payer: KnownPayer): DetailName[] {
  const known = knownDetails(payer);
  const wanted: DetailName[] = ['name', 'email'];
  if (payer.phoneNumberRequired) wanted.push('contactNumber');
  return wanted.filter((name) => !known[name]);
}

/** The subscription's own details first, then the customer's. */
export function knownDetails({ customerDetails, savedDetails }: KnownPayer): CustomerDetails {
  return {
    name: customerDetails.name || savedDetails?.name,
    email: customerDetails.email || savedDetails?.email,
    contactNumber: customerDetails.contactNumber || savedDetails?.contactNumber,
  };
}
