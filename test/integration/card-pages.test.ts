import { expect } from 'vitest';
import { onTimeSkippingServer as test } from '../support/environment.ts';
import { openPage } from '../../tools/scripts/client/browser.ts';
import { cardOf, payOn, payOnPage } from '../../tools/scripts/client/payer.ts';
import type { Shop } from '../support/shop.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';

/** The hosted pages with a card form, with the real tokeniser and workflows. */

const DAY_MS = 86_400_000;
const ADA = { name: 'Ada Example', email: 'ada@example.com' };
const LATER_DECLINED = cardOf('4000 0000 0000 0341');
const MASTERCARD = cardOf('5555 5555 5555 4444');

interface Read {
  status: string;
  updatePaymentMethodLink: string;
  paymentMetadata: { cardMetadata: { brand: string; lastFourDigit: string } };
}

/** Creates a subscription with a free trial. The payer saves `card`. */
async function subscribe(shop: Shop, card = cardOf('4242 4242 4242 4242')) {
  const { subscriptionId, fwdUrl } = await shop.merchant.post<{
    subscriptionId: string;
    fwdUrl: string;
  }>('/subscription/create', { ...MONTHLY, trialPeriodInterval: 'DAY', trialPeriodCount: 7 });
  await payOnPage(fwdUrl, card);
  const read = () => shop.merchant.get<Read>(`/subscription/get-subscription/${subscriptionId}`);
  return { subscriptionId, read };
}

test('a hosted payment is paid with a third card after two cards were declined [D-§7, D-40, D-44]', async ({
  shop,
}) => {
  const { xIntentId, fwdUrl } = await shop.merchant.post<{ xIntentId: string; fwdUrl: string }>(
    '/payments/create-intent',
    {
      amount: 2_500,
      currency: 'USD',
      customerDetails: ADA,
      callbackUrl: 'https://shop.example/paid?order=7',
      receiptId: 'r-1',
    },
  );
  const refused = await payOnPage(fwdUrl, cardOf('4242 4242 4242 4241'));
  expect(refused.alert).toContain('Your payment was declined and nothing was charged.');
  const declined = await payOn(refused, cardOf('4000 0000 0000 0002'));
  expect(declined.alert).toBe(refused.alert);
  const result = await payOn(declined, MASTERCARD);
  expect(result.title).toBe('Thank you: your payment was received');
  expect(result.refreshUrl).toBeNull();
  expect(result.links[0]?.url).toBe(
    `https://shop.example/paid?order=7&xpay_intent_id=${xIntentId}&status=SUCCESS&receipt_id=r-1`,
  );
  expect(await shop.merchant.get(`/payments/v2/get-intent/${xIntentId}`)).toMatchObject({
    status: 'SUCCESS',
  });
});

test('a setup session saves a card after another card was declined [IF-4.13, D-44]', async ({
  shop,
}) => {
  const { setupMethodId, fwdUrl } = await shop.merchant.post<{
    setupMethodId: string;
    fwdUrl: string;
  }>('/setup-method/create', {
    currency: 'USD',
    billingDetails: ADA,
    callbackUrl: 'https://shop.example/saved',
  });
  const declined = await payOnPage(fwdUrl, cardOf('4000 0000 0000 9995'));
  expect(declined.alert).toContain('was not saved. Nothing was charged.');
  const result = await payOn(declined, MASTERCARD);
  expect(result.title).toBe('Your card was saved');
  const onward = new URL(result.links[0]!.url).searchParams;
  expect([...onward.keys()]).toEqual(['setup_method_id', 'pm_id', 'customer_id', 'status']);
  expect([onward.get('setup_method_id'), onward.get('status')]).toEqual([setupMethodId, 'SUCCESS']);
});

test('a new card replaces the first card during the trial, without a charge [D-33]', async ({
  env,
  shop,
}) => {
  const { subscriptionId, read } = await subscribe(shop);
  // The run sets a timer of 5 to 30 s after the checkout; see `startTimeSkippingServer`.
  await env.server.sleep(60_000);
  const { updatePaymentMethodLink } = await read();
  const refused = await payOnPage(updatePaymentMethodLink, cardOf('4000 0000 0000 0002'));
  expect(refused.alert).toContain('Your card was declined and was not saved.');
  expect((await read()).paymentMetadata.cardMetadata.lastFourDigit).toBe('4242');

  const result = await payOn(refused, MASTERCARD);
  expect(result.title).toBe('Your card was replaced');
  expect(result.html).toContain('Mastercard ending in 4444 is used from now on.');
  expect(await read()).toMatchObject({
    status: 'TRIALING',
    paymentMetadata: { cardMetadata: { brand: 'mastercard', lastFourDigit: '4444' } },
  });
  expect(await env.book({ merchantId: env.merchantId, subscriptionId })).toEqual([]);
  expect((await openPage(updatePaymentMethodLink)).title).toBe('Your card was replaced');
});

test('a new card is kept when its charge is declined while the subscription is UNPAID [D-30, D-33]', async ({
  env,
  shop,
}) => {
  const { subscriptionId, read } = await subscribe(shop, LATER_DECLINED);
  const ref = { merchantId: env.merchantId, subscriptionId };
  await env.server.sleep(7 * DAY_MS + 60_000);
  await expect.poll(async () => (await read()).status, { timeout: 30_000 }).toBe('UNPAID');

  const { updatePaymentMethodLink } = await read();
  const kept = await payOnPage(updatePaymentMethodLink, cardOf('4000 0000 0000 9995'));
  expect(kept.alert).toBe(
    'Your new card was saved, but the payment of US$19.99 was declined. You can use another card.',
  );
  expect((await read()).paymentMetadata.cardMetadata.lastFourDigit).toBe('9995');

  const result = await payOn(kept, MASTERCARD);
  expect(result.title).toBe('Thank you: your payment was received');
  expect(await read()).toMatchObject({ status: 'ACTIVE' });
  const book = await env.book(ref);
  expect(book.map(({ outcome, amountMinor }) => [outcome, amountMinor])).toEqual([
    ['declined', 1_999],
    ['declined', 1_999],
    ['succeeded', 1_999],
  ]);
});
