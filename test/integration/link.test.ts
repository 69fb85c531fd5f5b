import { eq } from 'drizzle-orm';
import { expect, vi } from 'vitest';
import { subscriptionLinks, subscriptions } from '../../db/schema/subscriptions.ts';
import { onTimeSkippingServer as test } from '../support/environment.ts';
import { openPage, submitForm } from '../../tools/scripts/client/browser.ts';
import type { Page } from '../../tools/scripts/client/browser.ts';
import { cardOf, enterCardOn, payOn } from '../../tools/scripts/client/payer.ts';
import type { Shop } from '../support/shop.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/**
 * Subscription links and payment links with the real API and gateway. Checkouts expire in the time of a
 * time-skipping Temporal server.
 */

const DAY = 86_400_000;

async function makeLink(shop: Shop, changes: object = {}) {
  const { shortUrl } = await shop.merchant.post<{ shortUrl: string }>(
    '/subscription/link/merchant/generate-link',
    {
      amount: 1_999,
      currency: 'USD',
      interval: 'MONTH',
      intervalCount: 1,
      cycleCount: 12,
      customerDetails: {},
      expiryDate: Date.now() + 30 * DAY,
      ...changes,
    },
  );
  return shortUrl;
}

async function rowOf(env: TestEnvironment, shortUrl: string) {
  const [row] = await env.db
    .select()
    .from(subscriptionLinks)
    .where(eq(subscriptionLinks.code, shortUrl.split('/').at(-1)!));
  return row!;
}

/** Opens the link as a payer, enters name and e-mail, and returns the page with the card form. */
async function begin(shortUrl: string): Promise<Page> {
  const page = await openPage(shortUrl);
  return submitForm(page, page.forms[0]!, {
    Name: 'Ada Example',
    'E-mail address': 'ada@example.com',
  });
}

/** The newest subscription of a link. */
async function lastSoldBy(env: TestEnvironment, shortUrl: string) {
  const { id } = await rowOf(env, shortUrl);
  const sold = await env.db.select().from(subscriptions).where(eq(subscriptions.linkId, id));
  const { merchantId, id: subscriptionId } = sold
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .at(-1)!;
  return { merchantId, subscriptionId };
}

test('a link creates and charges a subscription when its payer pays [IF-4.4, D-37, D-44]', async ({
  env,
  shop,
}) => {
  const shortUrl = await makeLink(shop, {
    callbackUrl: 'https://shop.example/thanks',
    receiptId: 'r-7',
  });
  const declined = await payOn(await begin(shortUrl), cardOf('4000 0000 0000 0002'));
  expect(declined.alert).toContain('Your payment was declined and nothing was charged.');
  const result = await payOn(declined);
  const ref = await lastSoldBy(env, shortUrl);
  expect(result.title).toBe('Thank you: your payment was received');
  expect(result.links.map(({ url }) => url)).toEqual([
    `https://shop.example/thanks?subscription_id=${ref.subscriptionId}&status=ACTIVE&receipt_id=r-7`,
  ]);
  expect((await env.book(ref)).map(({ outcome, amountMinor }) => [outcome, amountMinor])).toEqual([
    ['declined', 1_999],
    ['succeeded', 1_999],
  ]);
  const events = await shop.news(ref.subscriptionId, 7);
  expect(events.map((line) => line.split(' ').slice(2, 4).join(' '))).toEqual([
    'intent.created CREATED',
    'subscription.created CREATED',
    'intent.checkout_opened CREATED',
    'intent.failed FAILED',
    'intent.success SUCCESS',
    'subscription.cycle_charged ACTIVE',
    'subscription.active ACTIVE',
  ]);
  expect((await rowOf(env, shortUrl)).uses).toBe(1);
  expect((await openPage(shortUrl)).status).toBe(410);
});

test('a link’s use is released when the payment of its cancelled checkout is declined [D-37, D-§4]', async ({
  env,
  shop,
}) => {
  const shortUrl = await makeLink(shop);
  const form = await begin(shortUrl);
  const ref = await lastSoldBy(env, shortUrl);
  const { subscriptionId } = ref;
  const match = { subscriptionId };
  const lose = { operation: 'charge', fault: 'lose_answer', count: 1_000, match };
  await env.control('POST', '/control/faults', lose);
  const failingLookup = { operation: 'lookup', fault: 'error_500', count: 1_000, match: {} };
  await env.control('POST', '/control/faults', failingLookup);
  const waiting = await enterCardOn(form, cardOf('4000 0000 0000 0002'));
  expect(waiting.title).toBe('Your payment is being processed');
  // Look-ups follow after 10, 40, 100 and 400 s; see `startTimeSkippingServer`.
  await env.server.sleep('2 minutes');
  expect(await shop.merchant.post('/subscription/merchant/cancel', { subscriptionId })).toEqual({});
  expect((await rowOf(env, shortUrl)).uses).toBe(1);
  expect((await openPage(shortUrl)).status).toBe(410);

  await env.control('DELETE', '/control/faults');
  await env.server.sleep('10 minutes');
  await vi.waitFor(async () => expect((await rowOf(env, shortUrl)).uses).toBe(0), {
    timeout: 30_000,
  });
  expect((await env.book(ref)).map(({ outcome }) => outcome)).toEqual(['declined']);
  const result = await payOn(await begin(shortUrl));
  expect(result.title).toBe('Thank you: your payment was received');
  expect((await rowOf(env, shortUrl)).uses).toBe(1);
});
