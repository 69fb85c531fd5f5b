import { parse } from 'node-html-parser';
import type { Page } from '../../../test/support/browser.ts';

/**
 * Returns the page if it takes cards from this machine.
 *
 * @throws Error if the machine's address has reached a limit of the hosted pages. The message has the text of the
 * page, which says when the limit ends.
 */
export function unlocked(page: Page): Page {
  if (page.status !== 429) return page;
  const text = parse(page.html).querySelector('p')?.text ?? page.title;
  throw new Error(
    `The hosted pages take no card from this machine now: ${text} Then run npm run demo again.`,
  );
}
