/** Rules: IF-2.10, D-43. */
export const PAYMENT_METHOD_KINDS = ['CARD', 'GOOGLE_PAY', 'APPLE_PAY'] as const;
export type PaymentMethodKind = (typeof PAYMENT_METHOD_KINDS)[number];
