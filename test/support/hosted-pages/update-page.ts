import type { ApiEnvironment } from '../api-environment.ts';
import { readSubscription, subscriptionIn } from '../fixtures/subscriptions.ts';
import type { CreatedSubscription } from '../fixtures/subscriptions.ts';
import { visit } from './visits.ts';

/** Returns the URL of the page on which the payer replaces the subscription's card. */
export async function updateLinkOf(
  api: ApiEnvironment,
  subscription: CreatedSubscription,
): Promise<string> {
  return String((await readSubscription(api, subscription))['updatePaymentMethodLink']);
}

/** Creates a subscription in `status` and opens its update link. */
export async function openUpdatePage(
  api: ApiEnvironment,
  status: 'TRIALING' | 'ACTIVE' | 'UNPAID',
  changes: Record<string, unknown> = {},
  declineCode?: string,
) {
  const subscription = await subscriptionIn(api, status, changes, declineCode);
  return { subscription, ...visit(api, await updateLinkOf(api, subscription)) };
}

/** Returns the last four digits of the subscription's card. */
export async function lastFourOf(
  api: ApiEnvironment,
  subscription: CreatedSubscription,
): Promise<unknown> {
  const { paymentMetadata } = await readSubscription(api, subscription);
  return (paymentMetadata as { cardMetadata: { lastFourDigit: string } }).cardMetadata
    .lastFourDigit;
}
