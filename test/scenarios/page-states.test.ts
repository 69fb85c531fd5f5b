import type { Browser } from 'playwright-core';
import { expect } from 'vitest';
import { test as apiTest } from '../support/api-environment.ts';
import { chromiumMissing, launchChromium } from '../support/chromium.ts';
import { drawSheets, requireFonts, SHEETS } from '../../tools/scripts/contact-sheets.ts';
import type { AxeCounts, ShownState } from '../../tools/scripts/contact-sheets.ts';
import { openTab, VIEWS } from '../support/hosted-pages/page-views.ts';
import { PAGE_STATES } from '../support/hosted-pages/states/index.ts';
import { openPageServers } from '../support/hosted-pages/states/page-servers.ts';

const LOCALES = ['en', 'de', 'ar', 'ja'] as const;

type ViewName = keyof typeof VIEWS;
type Views = Record<(typeof LOCALES)[number], readonly ViewName[]>;

/** Every view. Only English has `dark` and `forced`: the colours depend on no language. */
const ALL_VIEWS: Views = {
  en: ['wide', 'dark', 'forced', 'phone', 'large'],
  de: ['wide', 'phone', 'large'],
  ar: ['wide', 'phone', 'large'],
  ja: ['wide', 'phone', 'large'],
};

/** The views of a state whose layout another state shows in all views. */
const OWN_VIEWS: Views = { en: ['wide', 'phone'], de: [], ar: [], ja: [] };

/** One state of each layout, with each part that has its own colours or its own place. */
const LAYOUTS = [
  'checkout: details',
  'checkout: mistyped details',
  'checkout: card',
  'checkout: mistyped card',
  'checkout: brand',
  'checkout: declined',
  'checkout: processing',
  'checkout: paid',
  'payment: card',
  'setup: card',
  'update: card',
  'update: bank asks',
  'link: payment',
  'cancellation: form',
  'cancellation: mistyped',
  'cancellation: received',
  "payer's page: subscription",
  'Stripe: checkout',
  'unknown page',
];

const WITH_PICTURES = process.env['PICTURES'] === '1';
if (WITH_PICTURES) requireFonts();

const counts: AxeCounts = { pages: 0, passed: 0, violated: 0, undecided: new Set() };
const shown: ShownState[] = [];
/** The names of the states by the text of their page in English. */
const namesByText = new Map<string, string[]>();

const test = apiTest
  .extend('servers', { scope: 'file' }, ({ createApi }) => openPageServers(createApi))
  // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
  .extend('browser', { scope: 'file' }, async ({}, { onCleanup }): Promise<Browser> => {
    const browser = await launchChromium();
    onCleanup(() => browser.close());
    return browser;
  })
  .extend('tab', { scope: 'file' }, ({ browser }) => openTab(browser, counts));

test.beforeEach(({ skip }) => {
  const missing = chromiumMissing();
  if (missing !== null) skip(missing);
});

test.for(Object.entries(PAGE_STATES))(
  'the page $0 breaks no rule of axe, and all its text fits on a phone',
  async ([name, show], { servers, tab }) => {
    const found: string[] = [];
    const views = WITH_PICTURES || LAYOUTS.includes(name) ? ALL_VIEWS : OWN_VIEWS;
    for (const locale of LOCALES.filter((each) => views[each].length > 0)) {
      const answer = await show(servers, locale);
      const pictures: ShownState['pictures'] = { wide: Buffer.of(), phone: Buffer.of() };
      for (const [index, view] of views[locale].entries()) {
        // Chromium applies another size of text only to pages that it opens later.
        const isOpened = index === 0 || view === 'large';
        await (isOpened ? tab.show(answer, VIEWS[view]) : tab.setView(VIEWS[view]));
        found.push(...(await tab.cutOff()).map((text) => `${locale}, ${view}: cut off: ${text}`));
        found.push(...(await tab.violations()).map((text) => `${locale}, ${view}: ${text}`));
        for (const sheet of SHEETS) {
          if (sheet === view && WITH_PICTURES) {
            pictures[sheet] = await tab.page.screenshot({ fullPage: true });
          }
        }
      }
      if (locale === 'en') {
        const text = await tab.page.innerText('body');
        namesByText.set(text, [...(namesByText.get(text) ?? []), name]);
      }
      shown.push({ name, locale, pictures });
    }
    expect(found).toEqual([]);
  },
);

test('every state shows its own page, except that a payment of one amount in progress, and an expired or cancelled one, looks the same on every page', () => {
  expect([...namesByText.values()].filter((names) => names.length > 1)).toEqual([
    ['checkout: processing', 'update: waits for the bank', 'update: processing'],
    ['checkout: expired', 'payment: expired'],
    ['checkout: cancelled', 'payment: cancelled'],
  ]);
});

test('each layout in all views is one of the states', () => {
  expect(LAYOUTS.filter((name) => !(name in PAGE_STATES))).toEqual([]);
});

test('no page breaks a rule of axe; with PICTURES=1 the contact sheets are written', async ({
  browser,
}) => {
  expect(counts.violated).toBe(0);
  if (WITH_PICTURES) await drawSheets(browser, shown, counts);
});
