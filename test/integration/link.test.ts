import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { subscriptionLinks, subscriptions } from '../../db/schema/subscriptions.ts';
import { onDevServer as test } from '../support/environment.ts';
import { openPage, submitForm } from '../../tools/scripts/client/browser.ts';
import type { Page } from '../../tools/scripts/client/browser.ts';
import { cardOf, enterCardOn, payOn } from '../../tools/scripts/client/payer.ts';
import { eventually } from '../support/eventually.ts';
import type { Shop } from '../support/shop.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

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

test('a link’s use is released when the payment of its cancelled checkout is declined [D-37, D-§4]', async ({
  env,
  shop,
}) => {
  const shortUrl = await makeLink(shop);
  const form = await begin(shortUrl);
  const ref = await lastSoldBy(env, shortUrl);
  const { subscriptionId } = ref;
  await env.gatewayAway('done', { subscriptionId });
  let waiting = await enterCardOn(form, cardOf('4000 0000 0000 0002'));
  await eventually(async () => {
    // On a busy machine the page first asks the payer to wait for a worker.
    if (waiting.title === 'Just a moment') {
      waiting = await openPage(waiting.refreshUrl ?? '', waiting.browser);
    }
    expect(waiting.title).toBe('Your payment is being processed');
  });
  expect(await shop.merchant.post('/subscription/merchant/cancel', { subscriptionId })).toEqual({});
  expect((await rowOf(env, shortUrl)).uses).toBe(1);
  expect((await openPage(shortUrl)).status).toBe(410);

  await env.gatewayBack();
  await env.workflows.recheck(ref);
  await expect.poll(async () => (await rowOf(env, shortUrl)).uses).toBe(0);
  expect((await env.book(ref)).map(({ outcome }) => outcome)).toEqual(['declined']);
  const result = await payOn(await begin(shortUrl));
  expect(result.title).toBe('Thank you: your payment was received');
  expect((await rowOf(env, shortUrl)).uses).toBe(1);
});
