import type { Browser } from 'playwright-core';
import { expect } from 'vitest';
import { test as apiTest } from '../support/api-environment.ts';
import { chromiumMissing, launchChromium } from '../support/chromium.ts';
import { drawSheets, SHEET_WIDTHS } from '../support/hosted-pages/contact-sheets.ts';
import type { ShownState } from '../support/hosted-pages/contact-sheets.ts';
import { openPageServers, PAGE_STATES } from '../support/hosted-pages/page-states.ts';
import { openView } from '../support/hosted-pages/page-views.ts';
import type { AxeCounts } from '../support/hosted-pages/page-views.ts';

const LOCALES = ['en', 'de', 'ar'] as const;

const counts: AxeCounts = { pages: 0, passed: 0, violated: 0, undecided: new Set() };
const shown: ShownState[] = [];

const test = apiTest
  .extend('servers', { scope: 'file' }, ({ createApi }) => openPageServers(createApi))
  // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
  .extend('browser', { scope: 'file' }, async ({}, { onCleanup }): Promise<Browser> => {
    const browser = await launchChromium();
    onCleanup(() => browser.close());
    return browser;
  })
  .extend('views', { scope: 'file' }, async ({ browser }) => ({
    wide: await openView(browser, counts, { width: SHEET_WIDTHS.wide }),
    dark: await openView(browser, counts, { colorScheme: 'dark' }),
    forced: await openView(browser, counts, { forcedColors: 'active' }),
    phone: await openView(browser, counts, { width: SHEET_WIDTHS.phone }),
    large: await openView(browser, counts, { width: 360, hasLargeText: true }),
  }));

test.beforeEach(({ skip }) => {
  const missing = chromiumMissing();
  if (missing !== null) skip(missing);
});

test.for(PAGE_STATES)(
  'the page $name breaks no rule of axe, and all its text fits on a phone also at 200 %',
  async ({ name, show }, { servers, views }) => {
    const { wide, phone, large } = views;
    const found: string[] = [];
    for (const locale of LOCALES) {
      const answer = await show(servers, locale);
      const pictures: ShownState['pictures'] = { wide: Buffer.of(), phone: Buffer.of() };
      const isEnglish = locale === 'en';
      for (const [view, use] of Object.entries(isEnglish ? views : { wide, phone, large })) {
        await use.show(answer);
        found.push(...(await use.cutOff()).map((text) => `${locale}, ${view}: cut off: ${text}`));
        // The rules about colours, sizes and names give the same result in every language.
        if (isEnglish || use === wide) {
          found.push(...(await use.violations()).map((text) => `${locale}, ${view}: ${text}`));
        }
        if (view in pictures && process.env['PICTURES'] === '1') {
          pictures[view as 'wide' | 'phone'] = await use.page.screenshot({ fullPage: true });
        }
      }
      shown.push({ name, locale, bytes: Buffer.byteLength(answer.text), pictures });
    }
    expect(found).toEqual([]);
  },
);

test('no page breaks a rule of axe; with PICTURES=1 the contact sheets and the sizes are written', async ({
  browser,
}) => {
  expect(counts.violated).toBe(0);
  if (process.env['PICTURES'] === '1') await drawSheets(browser, shown, counts);
});
