export const KINDS = {
  customer: 'customer',
  payment_method: 'PaymentMethod',
  setup_intent: 'setupintent',
  payment_intent: 'payment_intent',
  'checkout.session': 'checkout.session',
  charge: 'charge',
  refund: 'refund',
  dispute: 'dispute',
  event: 'event',
} as const;

/**
 * The kind of an object: the value of its field `object`. `KINDS` has the name of each kind in Stripe's
 * messages.
 */
export type Kind = keyof typeof KINDS;
