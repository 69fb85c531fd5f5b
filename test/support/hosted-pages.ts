import type { Browser } from 'playwright-core';
import { vi } from 'vitest';
import { chromiumMissing, launchChromium } from './chromium.ts';
import { onDevServer } from './environment.ts';
import { openPayer, SHOP_URL } from './payer-browser.ts';
import type { PayerOptions } from './payer-browser.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';

export const DECLINED =
  'Your payment was declined and nothing was charged. Check the details and try again, or use another card.';

interface Created {
  subscriptionId: string;
  fwdUrl: string;
}

/**
 * As {@link onDevServer}, with a headless Chromium for the payers. Without Chromium every test of the file is
 * skipped with the reason, and in CI it fails.
 */
export function onHostedPages() {
  const test = onDevServer
    // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
    .extend('browser', { scope: 'file' }, async ({}, { onCleanup }): Promise<Browser> => {
      const browser = await launchChromium();
      onCleanup(() => browser.close());
      return browser;
    })
    .extend('payer', async ({ browser }, { onCleanup }) => {
      onCleanup(async () => {
        for (const context of browser.contexts()) await context.close();
      });
      return (options?: PayerOptions) => openPayer(browser, options);
    })
    /** Creates a subscription over HTTP, with access to its events and its charges. */
    .extend('subscribe', ({ env, shop }) => async (terms: object = {}) => {
      const { subscriptionId, fwdUrl } = await shop.merchant.post<Created>('/subscription/create', {
        ...MONTHLY,
        callbackUrl: `${SHOP_URL}/thanks`,
        cancelUrl: `${SHOP_URL}/basket`,
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
          (await env.book({ merchantId: env.merchantId, subscriptionId })).map(
            ({ outcome, amountMinor }) => `${outcome} ${amountMinor}`,
          ),
      };
    })
    /** Waits for `count` events of an intent or a setup session, and returns type and status of each. */
    .extend(
      'newsOf',
      ({ shop }) =>
        async (field: 'intentId' | 'setupMethodId', id: string, count: number) => {
          const received = () => shop.receiver.received.filter(({ event }) => event[field] === id);
          await vi.waitUntil(() => received().length >= count, { timeout: 60_000, interval: 20 });
          return received().map(({ event }) => `${event.eventType} ${String(event['status'])}`);
        },
    )
    .extend(
      'bookOfIntent',
      ({ env }) =>
        async (intentId: string) =>
          (await env.control('GET', `/control/charges?intentId=${intentId}`)).charges.map(
            ({ outcome, amountMinor }) => `${outcome} ${amountMinor}`,
          ),
    );
  test.beforeEach(({ skip }) => {
    const missing = chromiumMissing();
    if (missing !== null) skip(missing);
  });
  return test;
}
