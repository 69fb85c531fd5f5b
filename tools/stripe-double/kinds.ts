export const KINDS = {
  customer: 'customer',
  payment_method: 'PaymentMethod',
  setup_intent: 'setupintent',
  payment_intent: 'payment_intent',
  'checkout.session': 'checkout.session',
  charge: 'charge',
  refund: 'refund',
  dispute: 'dispute',
  'radar.early_fraud_warning': 'early fraud warning',
} as const;

/** The value of an object's field `object`. `KINDS` has its name in Stripe's messages. */
export type Kind = keyof typeof KINDS;
