export const SUBSCRIPTION_STATUSES = [
  'CREATED',
  'TRIALING',
  'ACTIVE',
  'UNPAID',
  'PAUSED',
  'ENDED',
] as const;
export type SubscriptionStatus = (typeof SUBSCRIPTION_STATUSES)[number];
