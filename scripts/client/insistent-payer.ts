import { setTimeout as sleep } from 'node:timers/promises';
import { Browser, openPage, PageOutOfReach } from '../../test/support/browser.ts';
import { payOn } from '../../test/support/payer.ts';

export interface InsistentPayerOptions {
  /** The payer's address, as a proxy in front of the site tells it. */
  readonly address: string;
  readonly withinMs: number;
  readonly betweenLooksMs: number;
  /** After a broken connection: whether to reload that page or to open the link again. */
  readonly reloadsBrokenPage?: () => boolean;
  readonly onRepeat?: () => void;
}

export interface PaidCheckout {
  readonly end: 'paid' | 'too late';
  /** Pages on the way that were answered 503 ("Just a moment"). */
  readonly answered503: number;
}

/**
 * Pays a hosted checkout by card, in a browser of its own. A broken page is reloaded, or its link is
 * opened again. `too late`: the checkout has expired.
 *
 * @throws Error naming the last page when it is not paid within `withinMs`.
 */
export async function payUntilAnswered(
  fwdUrl: string,
  options: InsistentPayerOptions,
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
      if (page.title === 'This checkout has expired') return { end: 'too late', answered503 };
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
    `${fwdUrl} was not paid within ${options.withinMs / 1_000} s; last seen: ${last}`,
  );
}
