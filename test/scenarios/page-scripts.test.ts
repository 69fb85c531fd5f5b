import type { Browser, Page } from 'playwright-core';
import { expect, vi } from 'vitest';
import { test as apiTest, TOKENISER_URL } from '../support/api-environment.ts';
import type { ApiEnvironment } from '../support/api-environment.ts';
import { chromiumMissing, launchChromium } from '../support/chromium.ts';
import { createSubscription } from '../support/fixtures/subscriptions.ts';
import { PAGE_STATES } from '../support/hosted-pages/states/index.ts';
import { openPageServers } from '../support/hosted-pages/states/page-servers.ts';
import { visit } from '../support/hosted-pages/visits.ts';
import { PAYING_CARD } from '../../tools/scripts/client/payer.ts';
import { fieldsOf, focused, heading, typeCard } from '../support/payer-browser.ts';

const test = apiTest
  .extend('apiOptions', { scope: 'file' }, { trustedProxies: 1 })
  .extend('servers', { scope: 'file' }, ({ createApi }) => openPageServers(createApi))
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

const checkoutUrl = async (api: ApiEnvironment): Promise<string> =>
  api.url + new URL((await createSubscription(api)).fwdUrl).pathname;

/** Answers each card that the page sends, and returns a function that tells how many it sent. */
async function countSent(page: Page): Promise<() => number> {
  let sent = 0;
  await page.route(TOKENISER_URL, (route) => {
    sent += 1;
    return route.fulfill({ status: 204 });
  });
  return () => sent;
}

/** A function that lists the days, whose parts are joined by spaces without a break, that stand on two lines. */
const BROKEN_DATES = `() => {
  const nodes = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  const broken = [];
  while (nodes.nextNode()) {
    for (const { 0: day, index } of nodes.currentNode.data.matchAll(/\\d+\\.?\\u00a0[\\p{L}\\u00a0]+\\u00a0\\d{4}|\\d{4}\\u2060?年[\\d月日\\u2060]+/gu)) {
      const range = document.createRange();
      range.setStart(nodes.currentNode, index);
      range.setEnd(nodes.currentNode, index + day.length);
      const tops = [...range.getClientRects()].map(({ top }) => Math.round(top));
      if (new Set(tops).size > 1) broken.push(day);
    }
  }
  return broken;
}`;

/** The number in the field, with `|` at the caret, and the brand that is shown. */
const typed = (page: Page) =>
  page.evaluate<[string, string]>(`(() => {
    const { value, selectionStart: at } = document.getElementById('number');
    return [value.slice(0, at) + '|' + value.slice(at), document.querySelector('output').value];
  })()`);

test('the card form groups the number while it is typed, and shows the brand', async ({
  api,
  open,
}) => {
  const { page, lines } = await open();
  await page.goto(await checkoutUrl(api));
  const field = page.getByLabel('Card number');
  for (const [number, shown, brand] of [
    ['4242424242424242', '4242 4242 4242 4242|', 'Visa'],
    ['5555555555554444', '5555 5555 5555 4444|', 'Mastercard'],
    ['2223003122003222', '2223 0031 2200 3222|', 'Mastercard'],
    ['378282246310005', '3782 822463 10005|', 'American Express'],
    ['30569309025904', '3056 930902 5904|', 'Diners Club'],
    ['6011111111111117', '6011 1111 1111 1117|', 'Discover'],
    ['3566002020360505', '3566 0020 2036 0505|', 'JCB'],
    ['6200000000000005', '6200 0000 0000 0005|', 'UnionPay'],
    ['9999', '9999|', ''],
    ['4242-4242', '4242 4242|', 'Visa'],
    ['42424242424242424242', '4242 4242 4242 4242 4242|', 'Visa'],
    ['4242 my card', '4242my card|', 'Visa'],
    ['my card', 'my card|', ''],
  ] as const) {
    await field.fill('');
    await field.pressSequentially(number);
    expect(await typed(page)).toEqual([shown, brand]);
    expect(await page.locator('output svg:visible').count()).toBe(brand === '' ? 0 : 1);
  }
  expect(await page.getByRole('status').count()).toBe(1);
  expect(lines).toEqual([]);
});

test('the caret of the card number stays beside its digit after a change in the middle', async ({
  api,
  open,
}) => {
  const { page } = await open();
  await page.goto(await checkoutUrl(api));
  const field = page.getByLabel('Card number');
  await field.fill('4242 4242 4242 4242');
  const press = async (...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key);
    return (await typed(page))[0];
  };
  await field.focus();
  expect(await press('Home', 'ArrowRight', 'ArrowRight', '9')).toBe('429|4 2424 2424 2424 2');
  // A space is no digit: Backspace and Delete move the caret over it, and remove a digit next.
  expect(await press('ArrowRight', 'ArrowRight', 'Backspace')).toBe('4294| 2424 2424 2424 2');
  expect(await press('1', '0')).toBe('4294 10|24 2424 2424 242');
  expect(await press('Backspace', 'Backspace')).toBe('4294| 2424 2424 2424 2');
  expect(await press('Delete')).toBe('4294 |2424 2424 2424 2');
  expect(await press('Delete')).toBe('4294 |4242 4242 4242');
});

test('a mistyped card is not sent: the first wrong field gets the focus, and the form keeps what the payer typed [D-61]', async ({
  api,
  open,
}) => {
  const { page, lines } = await open();
  const sent = await countSent(page);
  await page.goto(await checkoutUrl(api));
  const title = await page.title();
  const problems = async (number: string, expiry: string, cvc: string) => {
    await typeCard(page, { ...PAYING_CARD, number, expiry, cvc });
    await page.getByLabel('CVC').press('Enter');
    return [await focused(page), ...(await page.locator('.problem:visible').allInnerTexts())];
  };
  expect(await problems('4242 4242 4242 424', '13 / 34', '12')).toEqual([
    'Card number',
    'The card number is too short. Check that no digit is missing.',
    'Enter month and year as they are printed on the card, such as 08 / 29.',
    'Enter the 3 digits on the back of the card.',
  ]);
  expect(await page.title()).toBe(`Error: ${title}`);
  expect(await fieldsOf(page)).toContain(
    'CVC, required, invalid: Enter the 3 digits on the back of the card.',
  );
  expect(await page.getByLabel('CVC').inputValue()).toBe('12');
  for (const [number, expiry, cvc, ...found] of [
    [
      '4242 4242 4242 4243',
      '12 / 34',
      '123',
      'Card number',
      'The card number is not right. Compare each digit with your card.',
    ],
    [
      '4242 4242 4242 4242 4',
      '12/34',
      '123',
      'Card number',
      'The card number is too long. Check that no digit was typed twice.',
    ],
    ['4242 four', '12-34', '123', 'Card number', 'Enter the card number with digits only.'],
    [
      '4242 4242 4242 4242',
      '08 / 19',
      '123',
      'Expiry',
      'This date is in the past. Check the expiry, or use another card.',
    ],
    ['3782 822463 10005', '1234', '123', 'CVC', 'Enter the 4 digits on the front of the card.'],
  ] as const) {
    expect(await problems(number, expiry, cvc)).toEqual(found);
  }
  expect(sent()).toBe(0);
  // Typed on a Japanese keyboard. The second card is a listed test card with a wrong check digit.
  await page.evaluate(`document.querySelector('.note').append('4242 4242 4242 4241')`);
  for (const number of ['４２４２ ４２４２ ４２４２ ４２４２', '4242 4242 4242 4241']) {
    expect((await problems(number, '1 / 34', '１２３')).slice(1)).toEqual([]);
    await page.evaluate(`dispatchEvent(new Event('pageshow'))`);
  }
  await vi.waitUntil(() => sent() === 2, { timeout: 60_000 });
  expect(lines).toEqual([]);
});

test('a second click on Pay sends nothing while the first is under way, and the button is busy', async ({
  api,
  open,
}) => {
  const { page, lines } = await open();
  const sent = await countSent(page);
  await page.goto(await checkoutUrl(api));
  await typeCard(page);
  const pay = page.getByRole('button');
  expect(await pay.getAttribute('aria-busy')).toBe(null);
  await pay.dblclick();
  await vi.waitUntil(() => sent() > 0, { timeout: 60_000 });
  expect([sent(), await pay.getAttribute('aria-busy')]).toEqual([1, 'true']);
  expect(lines).toEqual([]);
});

test('no date breaks on a screen of 180 px, and on a wide screen the prices stand in one column', async ({
  servers,
  open,
}) => {
  const { page } = await open();
  for (const locale of ['en', 'de', 'pt', 'es', 'ar', 'ja'] as const) {
    for (const name of ['checkout: card', 'checkout: trial started', 'update: payment due']) {
      const { text } = await PAGE_STATES[name]!(servers, locale);
      await page.setViewportSize({ width: 180, height: 640 });
      await page.setContent(text);
      expect(await page.evaluate(`(${BROKEN_DATES})()`)).toEqual([]);
      await page.setViewportSize({ width: 1_024, height: 640 });
      const ends = await page.evaluate<number[]>(
        `[...document.querySelectorAll('dd')].map((each) => each.getBoundingClientRect().left)`,
      );
      expect(new Set(ends).size).toBe(1);
    }
  }
});

test('a page that asks for details, a paid checkout and the checkout of a Stripe merchant have no script and allow none', async ({
  servers,
}) => {
  for (const name of ['checkout: details', 'checkout: paid', 'Stripe: checkout', 'link: details']) {
    const { text, headers } = await PAGE_STATES[name]!(servers, 'en');
    expect([name, text.includes('<script')]).toEqual([name, false]);
    expect(headers['content-security-policy']).toMatch(/^default-src 'none'; style-src /);
    expect(headers['content-security-policy']).not.toContain('script-src');
  }
});

test.for([true, false])(
  'a page that waits for an outcome shows the result by itself, with JavaScript: %s',
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
    // The script requests the page's URL without a new load, so that a screen reader keeps its place in the page.
    if (hasScript) expect(loads).toBe(1);
    else await vi.waitUntil(() => loads > 1, { timeout: 60_000 });
    expect(await heading(page)).toBe('Your payment is being processed');
    api.workflows.faults.card = 'paid late';
    await api.workflows.lookUp(subscription.ref);
    await page.getByText('Thank you: your payment was received').waitFor();
    expect(lines).toEqual([]);
  },
);
