import { source as AXE } from 'axe-core';
import type { Browser } from 'playwright-core';
import type { AxeCounts } from '../../../tools/scripts/contact-sheets.ts';
import type { Answer } from '../api-environment.ts';

/** The address of every shown page. Its host does not exist. */
const SHOWN_URL = 'https://pages.example/shown';

const LOGO = {
  contentType: 'image/svg+xml',
  body:
    '<svg xmlns="http://www.w3.org/2000/svg" width="160" height="40">' +
    '<rect width="160" height="40" rx="8" fill="#0b6b3a"/></svg>',
};

/** Font size in px of a browser without settings. */
const TEXT_PX = 16;

interface View {
  readonly size: { readonly width: number; readonly height: number };
  readonly media?: { readonly colorScheme: 'dark' } | { readonly forcedColors: 'active' };
  readonly textPx?: number;
  /** The rules of axe whose result may differ from that of the view `wide`. Absent: every rule. */
  readonly rules?: readonly string[];
}

const WIDE = { width: 1_024, height: 480 };
const PHONE = { width: 360, height: 640 };

const RULES_OF_COLOUR = ['color-contrast', 'link-in-text-block'];
const RULES_OF_SIZE = ['target-size', 'scrollable-region-focusable', 'meta-viewport'];

/** The ways in which payers see a page. `large`: on a phone whose settings ask for text of 200 %. */
export const VIEWS = {
  wide: { size: WIDE },
  dark: { size: WIDE, media: { colorScheme: 'dark' }, rules: RULES_OF_COLOUR },
  forced: { size: WIDE, media: { forcedColors: 'active' }, rules: RULES_OF_COLOUR },
  phone: { size: PHONE, rules: RULES_OF_SIZE },
  large: { size: PHONE, textPx: 2 * TEXT_PX, rules: [] },
} as const satisfies Record<string, View>;

/**
 * Opens a tab. The pages have the headers of their answers and JavaScript, and reach no server: every further
 * request gets 204, so that an automatic redirect leaves the page in place.
 */
export async function openTab(browser: Browser, counts: AxeCounts) {
  const context = await browser.newContext();
  await context.addInitScript(AXE);
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  let next: Answer | null = null;
  let shown: Answer | null = null;
  await context.route('**/*', (route) => {
    const request = route.request();
    if (request.resourceType() === 'image') return route.fulfill(LOGO);
    if (request.url() === SHOWN_URL) shown = next;
    // A page that waits requests its outcome, and gets itself. If it got the next page, it would leave for its own
    // address, and that would cancel the opening of the next page.
    const isPage = request.url() === SHOWN_URL || request.resourceType() === 'fetch';
    return isPage && shown !== null
      ? route.fulfill({ status: shown.status, headers: headersOf(shown), body: shown.text })
      : route.fulfill({ status: 204 });
  });
  let rules: View['rules'];
  /** Shows the open page in another view with the same size of text, without opening it again. */
  const setView = async ({ size, media, rules: ofView }: View): Promise<void> => {
    rules = ofView;
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme: 'light', forcedColors: 'none', ...media });
  };
  return {
    page,
    /** Opens the answer in the view. */
    async show(answer: Answer, view: View): Promise<void> {
      const { textPx = TEXT_PX } = view;
      next = answer;
      await session.send('Page.setFontSizes', {
        fontSizes: { standard: textPx, fixed: textPx },
      });
      await setView(view);
      await page.goto(SHOWN_URL);
    },
    setView,
    /** Each violation of a rule of axe in the present view, with its element. Counts the rules in `counts`. */
    async violations(): Promise<string[]> {
      if (rules?.length === 0) return [];
      const results = await page.evaluate<AxeSummary>(
        `axe.run(${JSON.stringify(rules === undefined ? {} : { runOnly: rules })}).then(${SUMMARY})`,
      );
      counts.pages += 1;
      counts.passed += results.passed;
      counts.violated += results.violated;
      for (const text of results.undecided) counts.undecided.add(text);
      return results.violations;
    },
    /** The elements whose text does not fit, the page itself included. */
    cutOff: () => page.evaluate<string[]>(CUT_OFF),
  };
}

/** What a check by axe found: numbers of rules, and a text for each violation and each undecided check. */
interface AxeSummary {
  readonly passed: number;
  readonly violated: number;
  readonly violations: string[];
  readonly undecided: string[];
}

/**
 * A JavaScript function, run in the page, that makes an {@link AxeSummary} of axe's results. The whole results are many times
 * longer, and sending them takes CPU time in the browser and in the test.
 */
const SUMMARY = `({ passes, violations, incomplete }) => ({
  passed: passes.length,
  violated: violations.length,
  violations: violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html)),
  undecided: incomplete.flatMap(({ id, nodes }) =>
    nodes.flatMap(({ any }) => any.map(({ message }) => id + ': ' + message))),
})`;

/**
 * A script that lists the elements whose text is wider than their box. It leaves out inline elements, which have no box
 * of their own, and the fields of a form, which scroll a longer value.
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
