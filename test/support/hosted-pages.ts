import type { Browser } from 'playwright-core';
import { chromiumMissing, launchChromium } from './chromium.ts';
import { onDevServer } from './environment.ts';
import { openPayer, SHOP_URL } from './payer-browser.ts';
import type { PayerOptions } from './payer-browser.ts';

export const DECLINED =
  'Your payment was declined and nothing was charged. Check the details and try again, or use another card.';

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
    .extend('subscribe', ({ shop }) => async (terms: object = {}) => {
      const subscription = await shop.subscribe({
        callbackUrl: `${SHOP_URL}/thanks`,
        cancelUrl: `${SHOP_URL}/basket`,
        productPage: { name: 'Garden Letters', description: 'One letter a month.' },
        ...terms,
      });
      const news = async (count: number) =>
        (await shop.news(subscription.subscriptionId, count)).map((line) =>
          line.slice('2026-11-20 12:00 '.length),
        );
      return { ...subscription, news };
    });
  test.beforeEach(({ skip }) => {
    const missing = chromiumMissing();
    if (missing !== null) skip(missing);
  });
  return test;
}
