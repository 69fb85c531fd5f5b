import { parse } from 'node-html-parser';
import type { Page } from '../client/browser.ts';

/** Throws if this machine's address has reached a limit of the hosted pages, with the page's text. */
export function unlocked(page: Page): Page {
  if (page.status !== 429) return page;
  const text = parse(page.html).querySelector('p')?.text ?? page.title;
  throw new Error(
    `The hosted pages take no card from this machine now: ${text} Then run npm run demo again.`,
  );
}
