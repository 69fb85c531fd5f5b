import type { Browser } from 'playwright-core';
import { expect, vi } from 'vitest';
import { test as apiTest } from '../support/api-environment.ts';
import { chromiumMissing, launchChromium } from '../support/chromium.ts';
import { createSubscription } from '../support/fixtures/subscriptions.ts';
import { visit } from '../support/hosted-pages/visits.ts';
import { heading } from '../support/payer-browser.ts';

const test = apiTest
  .extend('apiOptions', { scope: 'file' }, { trustedProxies: 1 })
  // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
  .extend('browser', { scope: 'file' }, async ({}, { onCleanup }): Promise<Browser> => {
    const browser = await launchChromium();
    onCleanup(() => browser.close());
    return browser;
  })
  /** Opens a tab. Lists the lines of its console, where Chromium reports a blocked script. */
  .extend('open', async ({ browser }, { onCleanup }) => {
    onCleanup(async () => {
      for (const context of browser.contexts()) await context.close();
    });
    return async (javaScriptEnabled = true) => {
      const page = await (await browser.newContext({ javaScriptEnabled })).newPage();
      const lines: string[] = [];
      page.on('console', (line) => lines.push(line.text()));
      page.on('pageerror', (error) => lines.push(error.message));
      return { page, lines };
    };
  });

test.beforeEach(({ skip }) => {
  const missing = chromiumMissing();
  if (missing !== null) skip(missing);
});

test.for([true, false])(
  'a page that waits opens the result by itself, with JavaScript %s',
  async (hasScript, { api, open }) => {
    const subscription = await createSubscription(api);
    const { comeBack, path } = visit(api, subscription.fwdUrl);
    await comeBack(`payment_token=tok_unknown_waiting_${hasScript}`);
    const { page, lines } = await open(hasScript);
    let loads = 0;
    page.on('load', () => {
      loads += 1;
    });
    await page.goto(api.url + path);
    await page.waitForRequest(api.url + path);
    // The script asks from the open page, so that a screen reader keeps its place in it.
    if (hasScript) expect(loads).toBe(1);
    else await vi.waitUntil(() => loads > 1, { timeout: 20_000 });
    expect(await heading(page)).toBe('Your payment is being processed');
    api.workflows.faults.card = 'paid late';
    await api.workflows.lookUp(subscription.ref);
    await page.getByText('Thank you: your payment was received').waitFor();
    expect(lines).toEqual([]);
  },
);
