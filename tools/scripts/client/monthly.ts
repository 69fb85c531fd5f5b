import type { Client, CreateSubscriptionRequest } from '../../../client/index.ts';
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
} as const;

/** Creates a subscription, by default of {@link MONTHLY}, and pays its hosted page. Returns its id. */
export async function subscribe(
  client: Client,
  changes: Partial<CreateSubscriptionRequest> = {},
): Promise<string> {
  const body = { ...MONTHLY, ...changes };
  const { subscriptionId, fwdUrl } = await client.createSubscription({ body });
  await payOnPage(fwdUrl);
  return subscriptionId;
}
