import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, vi } from 'vitest';
import { chromiumMissing, launchChromium } from './chromium.ts';
import { openPayer, SHOP_URL } from './payer-browser.ts';
import type { PayerOptions } from './payer-browser.ts';
import { openShop } from './shop.ts';
import type { Shop } from './shop.ts';
import { connectDevServer } from './temporal-servers.ts';
import { createWorld } from './world.ts';
import type { World } from './world.ts';

export const DECLINED =
  'Your payment was declined and nothing was charged. Check the details and try again, or use another card.';

interface Created {
  subscriptionId: string;
  fwdUrl: string;
}

/**
 * A merchant fixture and payers with browsers, for the tests of one file. Call it at the top of the
 * file. Without Chromium every test of the file is skipped with the reason.
 */
export function hostedWorld() {
  const missing = chromiumMissing();
  let world: World;
  let shop: Shop;
  let browser: Browser;
  const toClose: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    if (missing !== null) return;
    browser = await launchChromium();
    toClose.push(() => browser.close());
    const server = await connectDevServer();
    toClose.push(() => server.teardown());
    world = await createWorld(server);
    toClose.push(() => world.close());
    shop = await openShop(world);
    toClose.push(() => shop.close());
  });
  afterAll(async () => {
    for (const close of toClose.toReversed()) await close();
  });
  beforeEach((context) => {
    if (missing !== null) context.skip(missing);
  });
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close();
  });

  return {
    world: () => world,
    shop: () => shop,
    payer: (options?: PayerOptions): Promise<Page> => openPayer(browser, options),

    /** Creates a subscription over HTTP, with access to its events and its charges. */
    subscribe: async (terms: object = {}) => {
      const { subscriptionId, fwdUrl } = await shop.merchant.post<Created>('/subscription/create', {
        customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
        callbackUrl: `${SHOP_URL}/thanks`,
        cancelUrl: `${SHOP_URL}/basket`,
        currency: 'USD',
        amount: 1_999,
        interval: 'MONTH',
        intervalCount: 1,
        cycleCount: 12,
        productPage: { name: 'Garden Letters', description: 'One letter a month.' },
        ...terms,
      });
      return {
        subscriptionId,
        fwdUrl,
        news: async (count: number) =>
          (await shop.news(subscriptionId, count)).map((line) =>
            line.slice('2026-11-20 12:00 '.length),
          ),
        /** Outcome and amount of every charge in the gateway's own records. */
        book: async () =>
          (await world.book({ merchantId: world.merchantId, subscriptionId })).map(
            ({ outcome, amountMinor }) => `${outcome} ${amountMinor}`,
          ),
      };
    },

    /** Waits for `count` events of an intent or a setup session, and returns type and status of each. */
    newsOf: async (field: 'intentId' | 'setupMethodId', id: string, count: number) => {
      const received = () => shop.receiver.received.filter(({ event }) => event[field] === id);
      await vi.waitUntil(() => received().length >= count, { timeout: 30_000, interval: 20 });
      return received().map(({ event }) => `${event.eventType} ${String(event['status'])}`);
    },

    bookOfIntent: async (intentId: string) =>
      (await world.control('GET', `/control/charges?intentId=${intentId}`)).charges.map(
        ({ outcome, amountMinor }) => `${outcome} ${amountMinor}`,
      ),
  };
}
