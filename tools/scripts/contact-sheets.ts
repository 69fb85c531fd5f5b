import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import type { Browser } from 'playwright-core';

/** Number of checks by axe, and the sums of the rules that passed and of the rules that were violated in them. */
export interface AxeCounts {
  pages: number;
  passed: number;
  violated: number;
  /** Rules that axe could not decide on a page, each with the reason. */
  readonly undecided: Set<string>;
}

/** The views for which a contact sheet is drawn: one picture with every state of the hosted pages. */
export const SHEETS = ['wide', 'phone'] as const;
type Sheet = (typeof SHEETS)[number];

/** Width of a picture on its sheet in px: the texts stay readable. */
const PICTURE_WIDTHS = { wide: 450, phone: 216 } as const;

/** A state of a page in one language, with a PNG for each sheet. */
export interface ShownState {
  readonly name: string;
  readonly locale: string;
  readonly pictures: Record<Sheet, Buffer>;
}

const FOLDER = 'docs/images/pages';
const SHEET_WIDTH_PX = 1_880;

/** Quality of the WebP files, 0 to 100. With it a sheet has less than 350 kB. */
const QUALITY = 25;

const LANGUAGES: Readonly<Record<string, string>> = {
  en: 'English',
  de: 'German',
  ar: 'Arabic',
  ja: 'Japanese',
};

/** Throws if the pictures would show boxes instead of Arabic or Japanese signs. */
export function requireFonts(): void {
  for (const language of ['ar', 'ja']) {
    if (execFileSync('fc-list', [`:lang=${language}`]).length > 0) continue;
    throw new Error(`no font for ${language}: install fonts-dejavu-core and fonts-ipafont-gothic`);
  }
}

/**
 * Draws a contact sheet for each language and width into `docs/images/pages/`, and writes the result of
 * axe beside them.
 */
export async function drawSheets(
  browser: Browser,
  states: readonly ShownState[],
  counts: AxeCounts,
): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  const locales = [...new Set(states.map(({ locale }) => locale))];
  for (const locale of locales) {
    for (const width of SHEETS) {
      const own = states.filter((state) => state.locale === locale);
      writeFileSync(`${FOLDER}/${width}-${locale}.webp`, await drawSheet(browser, own, width));
    }
  }
  writeFileSync(`${FOLDER}/README.md`, documentOf(states, locales, counts));
}

async function drawSheet(
  browser: Browser,
  states: readonly ShownState[],
  width: Sheet,
): Promise<Buffer> {
  const context = await browser.newContext({ viewport: { width: SHEET_WIDTH_PX, height: 400 } });
  const page = await context.newPage();
  const figures = states.map(
    ({ name, pictures }) =>
      `<figure><figcaption>${name}</figcaption><img width="${PICTURE_WIDTHS[width]}" ` +
      `src="data:image/png;base64,${pictures[width].toString('base64')}"></figure>`,
  );
  await page.setContent(`<!doctype html><style>
    body { margin: 12px; display: flex; flex-wrap: wrap; gap: 14px; align-items: start; background: #c9cfd9 }
    figure { margin: 0 } figcaption { font: 600 13px/1.6 sans-serif } img { display: block }
  </style>${figures.join('')}`);
  await page.evaluate('Promise.all([...document.images].map((image) => image.decode()))');
  const height = await page.evaluate<number>('document.documentElement.scrollHeight');
  const session = await context.newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', {
    format: 'webp',
    quality: QUALITY,
    captureBeyondViewport: true,
    clip: { x: 0, y: 0, width: SHEET_WIDTH_PX, height, scale: 1 },
  });
  await context.close();
  return Buffer.from(data, 'base64');
}

function documentOf(
  states: readonly ShownState[],
  locales: readonly string[],
  { pages, passed, violated, undecided }: AxeCounts,
): string {
  const names = [...new Set(states.map(({ name }) => name))];
  const languages = locales.map((locale) => LANGUAGES[locale] ?? locale);
  return [
    '# The hosted pages in every state',
    '',
    'This file and its pictures are drawn by a command:',
    '',
    '```',
    'PICTURES=1 npm run test -- --project scenarios test/scenarios/page-states',
    '```',
    '',
    `axe-core checked ${names.length} states of the pages in English, German, Arabic and Japanese: with every rule on a wide`,
    'screen, with the rules about sizes on a phone, and in English with the rules about colours in dark mode and with',
    `forced colours. In these ${pages} views it found ${violated} violations; ${passed} rules passed. It could not decide:`,
    '',
    ...[...undecided].toSorted().map((reason) => `- ${reason}`),
    '',
    ...locales.flatMap((locale, index) => [
      `## ${languages[index]}`,
      '',
      `![Every page in ${languages[index]} on a wide screen](wide-${locale}.webp)`,
      `![Every page in ${languages[index]} on a phone](phone-${locale}.webp)`,
      '',
    ]),
  ].join('\n');
}
