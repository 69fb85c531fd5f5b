/** The body of a request to create a subscription of 19.99 USD a month, 12 cycles. */
export const MONTHLY = {
  amount: 1_999,
  currency: 'USD',
  interval: 'MONTH',
  intervalCount: 1,
  cycleCount: 12,
  customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
  callbackUrl: 'https://shop.example/thanks',
};
