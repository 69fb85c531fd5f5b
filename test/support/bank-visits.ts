import { vi } from 'vitest';
import { openPage, submitForm } from '../../tools/scripts/client/browser.ts';
import type { Browser, Page } from '../../tools/scripts/client/browser.ts';
import { submitConfirmedCard, submitForm as answerPage } from './stripe.ts';

/** A payer who enters a card on Stripe's page and confirms its charge on the page of the bank. */

/** The bank of this card wants the payer to confirm every payment. */
export const ASKING_CARD = '4000002760003184';
export const PAYING_CARD = '4242424242424242';

export const ADA = { name: 'Ada Example', email: 'ada@example.com' };

/** Opens the page in the browser, and then every page of our own site to which it reloads by itself. */
async function openAndWait(url: string, browser?: Browser): Promise<Page> {
  return waitOn(await openPage(url, browser));
}

async function waitOn(shown: Page): Promise<Page> {
  let page = shown;
  const isOwn = () =>
    page.refreshUrl !== null && new URL(page.refreshUrl).origin === new URL(page.url).origin;
  await vi.waitUntil(
    async () => {
      if (isOwn()) page = await openPage(page.refreshUrl ?? '', page.browser);
      return !isOwn();
    },
    { timeout: 60_000, interval: 50 },
  );
  return page;
}

/**
 * Presses the button that leads to Stripe's page, enters a card there, confirms the card if its bank asks for it, and
 * returns. The result is the page that shows the outcome or leads to the bank.
 */
export async function enterCard(page: Page, number: string): Promise<Page> {
  const form = page.forms.find(({ button }) => button === 'Continue to enter your card');
  if (!form) throw new Error(`no such button: ${page.html}`);
  const { refreshUrl } = await submitForm(page, form, {});
  const { location } = await submitConfirmedCard(refreshUrl ?? '', number);
  return openAndWait(location ?? '', page.browser);
}

/**
 * Confirms or refuses on the page of the bank to which `leave` leads. Returns our page with the outcome, in the same
 * browser or in `browser`.
 */
export async function answerBank(
  leave: Page,
  outcome: 'complete' | 'fail',
  browser: Browser = leave.browser,
): Promise<Page> {
  const { location, html } = await answerPage(leave.refreshUrl ?? '', { outcome });
  if (location === null) throw new Error(`the bank did not send the payer back: ${html}`);
  const back = new URL(location);
  // The worker's links name another host than the API of the test.
  return openAndWait(new URL(leave.url).origin + back.pathname + back.search, browser);
}
