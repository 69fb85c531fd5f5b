import { source as AXE } from 'axe-core';
import type { AxeResults } from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import type { Answer } from '../api-environment.ts';

/** The address of every shown page. Its host does not exist. */
const SHOWN_URL = 'https://pages.example/shown';

const LOGO = {
  contentType: 'image/svg+xml',
  body:
    '<svg xmlns="http://www.w3.org/2000/svg" width="160" height="40">' +
    '<rect width="160" height="40" rx="8" fill="#0b6b3a"/></svg>',
};

/** Font size in px of a payer who reads with text twice as large as usual. */
const LARGE_TEXT_PX = 32;

export interface View {
  readonly width?: number;
  readonly colorScheme?: 'light' | 'dark';
  readonly forcedColors?: 'active' | 'none';
  /** Text of 200 %, as in the settings of a browser. */
  readonly hasLargeText?: boolean;
}

/** A browser tab that shows the answers of a server as pages. */
export interface PageView {
  readonly page: Page;
  show(answer: Answer): Promise<void>;
  /** Each violation of a rule of axe, with its element. Counts the rules in `counts`. */
  violations(): Promise<string[]>;
  /** The elements whose text does not fit, the page itself included. */
  cutOff(): Promise<string[]>;
}

/** Number of checked pages, and of rules with a result of axe on them. */
export interface AxeCounts {
  pages: number;
  passed: number;
  violated: number;
  /** Rules that axe could not decide on a page, each with the reason. */
  readonly undecided: Set<string>;
}

/**
 * Opens a tab. Its pages have the headers of their answers and JavaScript, and reach no server: every further
 * request gets 204, so that an automatic redirect leaves the page in place.
 */
export async function openView(
  browser: Browser,
  counts: AxeCounts,
  { width = 1_024, hasLargeText = false, ...media }: View = {},
): Promise<PageView> {
  const context = await browser.newContext({
    viewport: { width, height: width < 500 ? 640 : 480 },
    ...media,
  });
  const page = await context.newPage();
  let shown: Answer | null = null;
  await context.route('**/*', (route) => {
    const request = route.request();
    if (request.resourceType() === 'image') return route.fulfill(LOGO);
    // A page that waits looks for its outcome, and finds itself.
    const isPage = request.url() === SHOWN_URL || request.resourceType() === 'fetch';
    return isPage && shown !== null
      ? route.fulfill({ status: shown.status, headers: headersOf(shown), body: shown.text })
      : route.fulfill({ status: 204 });
  });
  if (hasLargeText) {
    const session = await context.newCDPSession(page);
    const fontSizes = { standard: LARGE_TEXT_PX, fixed: LARGE_TEXT_PX };
    await session.send('Page.setFontSizes', { fontSizes });
  }
  return {
    page,
    async show(answer) {
      shown = answer;
      await page.goto(SHOWN_URL);
    },
    async violations() {
      await page.evaluate(AXE);
      const results = await page.evaluate<AxeResults>('axe.run()');
      counts.pages += 1;
      counts.passed += results.passes.length;
      counts.violated += results.violations.length;
      for (const { id, nodes } of results.incomplete) {
        for (const { any } of nodes) {
          for (const { message } of any) counts.undecided.add(`${id}: ${message}`);
        }
      }
      return results.violations.flatMap(({ id, nodes }) =>
        nodes.map(({ html }) => `${id}: ${html}`),
      );
    },
    cutOff: () => page.evaluate<string[]>(CUT_OFF),
  };
}

/**
 * Inline elements have no box of their own whose width their text could exceed. A field of a form scrolls a value that
 * is wider than the field.
 */
const CUT_OFF = `[document.documentElement, ...document.querySelectorAll('main :not(input)')]
  .filter((element) => getComputedStyle(element).display !== 'inline')
  .filter((element) => element.scrollWidth > element.clientWidth + 1)
  .map((element) => element.outerHTML.slice(0, 120))`;

function headersOf({ headers }: Answer): Record<string, string> {
  return {
    'content-type': String(headers['content-type']),
    'content-security-policy': String(headers['content-security-policy']),
  };
}
