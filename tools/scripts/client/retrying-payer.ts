import { setTimeout as sleep } from 'node:timers/promises';
import { Browser, openPage, PageOutOfReach } from './browser.ts';
import { payOn } from './payer.ts';

export interface RetryingPayerOptions {
  readonly address: string;
  readonly withinMs: number;
  readonly betweenLooksMs: number;
  /** After a broken connection: true reloads the page, false opens the link again. */
  readonly reloadsBrokenPage?: () => boolean;
  readonly onRepeat?: () => void;
}

export interface PaidCheckout {
  readonly end: 'paid' | 'too late';
  /** Number of pages answered with 503 ("Just a moment"). */
  readonly answered503: number;
}

/** Pays as a new payer, and reloads pages that fail. `too late`: the checkout has expired. Throws the last page. */
export async function payUntilAnswered(
  fwdUrl: string,
  options: RetryingPayerOptions,
): Promise<PaidCheckout> {
  const giveUpAt = performance.now() + options.withinMs;
  const browser = new Browser(options.address);
  let url = fwdUrl;
  let last = '';
  let answered503 = 0;
  while (performance.now() < giveUpAt) {
    try {
      let page = await openPage(url, browser);
      if (page.forms.length > 0) page = await payOn(page);
      if (page.title.startsWith('Thank you') || page.title === 'Your free trial has started')
        return { end: 'paid', answered503 };
      if (page.title === 'This page has expired') return { end: 'too late', answered503 };
      if (page.status === 503) answered503 += 1;
      last = `"${page.title}"`;
      url = page.refreshUrl ?? fwdUrl;
    } catch (error) {
      if (!(error instanceof PageOutOfReach)) throw error;
      last = error.message;
      url = options.reloadsBrokenPage?.() === true ? error.url : fwdUrl;
    }
    options.onRepeat?.();
    await sleep(options.betweenLooksMs);
  }
  throw new Error(
    `${fwdUrl} was not paid within ${options.withinMs / 1_000} s; last page: ${last}`,
  );
}
