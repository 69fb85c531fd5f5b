import type { MerchantClient } from './merchant-client.ts';
import { payOnPage } from './payer.ts';

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

/** Creates a subscription, by default of {@link MONTHLY}, and pays its hosted page. Returns its id. */
export async function subscribe(client: MerchantClient, changes: object = {}): Promise<string> {
  const { subscriptionId, fwdUrl } = await client.post<{ subscriptionId: string; fwdUrl: string }>(
    '/subscription/create',
    { ...MONTHLY, ...changes },
  );
  await payOnPage(fwdUrl);
  return subscriptionId;
}
