import type { Browser, Locator, Page } from 'playwright-core';
import { PAYING_CARD } from '../../tools/scripts/client/payer.ts';
import type { TypedCard } from '../../tools/scripts/client/payer.ts';

/** The merchant's site in tests. The browser itself answers the requests to this site. */
export const SHOP_URL = 'https://shop.example';

export interface PayerOptions {
  /** Whether JavaScript is on. Hosted pages work without it. Default: false. */
  readonly script?: boolean;
  readonly width?: number;
}

/** Opens one tab in a new browser context with its own cookies. */
export async function openPayer(
  browser: Browser,
  { script = false, width = 1_280 }: PayerOptions = {},
): Promise<Page> {
  const context = await browser.newContext({
    javaScriptEnabled: script,
    viewport: { width, height: 900 },
    colorScheme: 'light',
  });
  // As in test/support/eventually.ts: a limit for tests that fail.
  context.setDefaultTimeout(60_000);
  await context.route(`${SHOP_URL}/**`, (route) =>
    route.fulfill({ contentType: 'text/html', body: '<title>The shop</title><h1>The shop</h1>' }),
  );
  return context.newPage();
}

/** Types a card into the card form. */
export async function typeCard(page: Page, card: TypedCard = PAYING_CARD): Promise<void> {
  await page.getByLabel('Name on card').fill(card.name);
  await page.getByLabel('Card number').fill(card.number);
  await page.getByLabel('Expiry').fill(card.expiry);
  await page.getByLabel('CVC').fill(card.cvc);
}

/**
 * Types a card, submits the form and waits for the next page. On a busy machine this page may wait for the outcome. Then
 * the page reloads itself, and this function waits, too.
 */
export async function payByCard(page: Page, card: TypedCard = PAYING_CARD): Promise<void> {
  await typeCard(page, card);
  // Above the form for a new card there may be a button that pays with the saved one.
  await clickThrough(page, page.getByRole('button').last());
  const waiting = page.locator('script[data-url]');
  do {
    await waiting.waitFor({ state: 'detached' });
    await page.waitForLoadState();
  } while ((await waiting.count()) > 0);
}

/**
 * Clicks `target` and waits until the browser has loaded the next page. `Page.waitForLoadState` would return at once if
 * the browser has not begun to leave the present page.
 */
export async function clickThrough(page: Page, target: Locator): Promise<void> {
  await Promise.all([page.waitForEvent('load'), target.click()]);
}

export const heading = (page: Page) => page.getByRole('heading', { level: 1 }).innerText();

/** Label or text of the focused element. */
export const focused = (page: Page) =>
  page.evaluate<string>(
    '(document.activeElement.labels?.[0] ?? document.activeElement).innerText.trim()',
  );

/** Label, state and description of every visible field, as a screen reader reads them. */
export const fieldsOf = (page: Page) =>
  page.evaluate<
    string[]
  >(`[...document.querySelectorAll('input:not([type=hidden])')].map((input) => {
    const described = document.getElementById(input.getAttribute('aria-describedby') ?? '');
    return [
      [...input.labels].map((label) => label.innerText).join(' '),
      ...(input.required ? ['required'] : []),
      ...(input.getAttribute('aria-invalid') === 'true' ? ['invalid'] : []),
    ].join(', ') + (described ? ': ' + described.innerText : '');
  })`);

/** The values of the page's description list (`dl`), by label. */
export const receiptOf = (page: Page) =>
  page.evaluate<Record<string, string>>(
    "Object.fromEntries([...document.querySelectorAll('dt')].map((label) => [label.innerText, label.nextElementSibling.innerText.replaceAll('\\u00a0', ' ')]))",
  );

/** The width in pixels by which the page is wider than the screen. */
export const tooWide = (page: Page) =>
  page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
