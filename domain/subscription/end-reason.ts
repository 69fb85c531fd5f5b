export const END_REASONS = [
  'completed',
  'cancelled',
  'checkout_expired',
  'checkout_cancelled',
  'retries_exhausted',
] as const;
export type EndReason = (typeof END_REASONS)[number];
