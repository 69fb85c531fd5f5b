import { setTimeout as sleep } from 'node:timers/promises';
import { Browser, openPage, PageOutOfReach, submitForm } from './browser.ts';
import type { Page } from './browser.ts';
import { PAYING_CARD, payOn } from './payer.ts';
import type { TypedCard } from './payer.ts';

/** `come back`: the payer closes the bank's page, and opens the link again. `other card`: then gives another card. */
export type BankAnswer = 'complete' | 'fail' | 'come back' | 'other card';

export interface RetryingPayerOptions {
  readonly address: string;
  readonly withinMs: number;
  readonly betweenLooksMs: number;
  /** After a broken connection: true reloads the page, false opens the link again. */
  readonly reloadsBrokenPage?: () => boolean;
  readonly onRepeat?: () => void;
  /** Default: the card that pays. */
  readonly card?: TypedCard;
  /** Called once if the page offers a saved card. Default: takes `card`. */
  readonly takesSavedCard?: () => boolean;
  /** The card after a decline. Null: the payer gives up. Default: the same card again. */
  readonly nextCard?: () => TypedCard | null;
  /** Called on the page of the bank (3D Secure). Default: completes. */
  readonly atBank?: () => Promise<BankAnswer>;
}

/** `saved`: a new card that is charged later. `declined`: the payer gave up. `closed`: the page takes no card. */
export type PageEnd = 'paid' | 'saved' | 'declined' | 'closed' | 'too late';

export interface VisitedPage {
  readonly end: PageEnd;
  /** Number of pages answered with 503 ("Just a moment"). */
  readonly answered503: number;
}

const ENDS: Readonly<Record<string, PageEnd>> = {
  'Thank you: your payment was received': 'paid',
  'Your free trial has started': 'paid',
  'Your card was replaced': 'saved',
  'Your card was saved': 'saved',
  'Your new card was saved': 'declined',
  'Your card cannot be changed here': 'closed',
  'This page takes no more cards': 'closed',
  'This page has expired': 'too late',
};

/** Gives a card as a new payer, on a checkout or an update page, and reloads pages that fail. Throws the last page. */
export async function payUntilAnswered(
  link: string,
  options: RetryingPayerOptions,
): Promise<VisitedPage> {
  const giveUpAt = performance.now() + options.withinMs;
  const payer = new RetryingPayer(link, options);
  let last = '';
  let answered503 = 0;
  while (performance.now() < giveUpAt) {
    try {
      const page = await payer.step();
      const end = payer.hasGivenUp ? 'declined' : ENDS[page.title];
      if (end !== undefined) return { end, answered503 };
      if (page.status === 503) answered503 += 1;
      last = `"${page.title}"`;
    } catch (error) {
      if (!(error instanceof PageOutOfReach)) throw error;
      last = error.message;
      payer.url = options.reloadsBrokenPage?.() === true ? error.url : link;
    }
    options.onRepeat?.();
    await sleep(options.betweenLooksMs);
  }
  throw new Error(`${link} was not paid within ${options.withinMs / 1_000} s; last page: ${last}`);
}

class RetryingPayer {
  url: string;
  hasGivenUp = false;
  private card: TypedCard;
  private hasGivenCard = false;
  /** The payer does not confirm, and gives another card. */
  private avoidsBank = false;
  private readonly browser: Browser;
  private readonly link: string;
  private readonly options: RetryingPayerOptions;

  constructor(link: string, options: RetryingPayerOptions) {
    this.url = link;
    this.link = link;
    this.options = options;
    this.card = options.card ?? PAYING_CARD;
    this.browser = new Browser(options.address);
  }

  /** Opens the page at `url`, and fills in its form. Returns the page that follows, and sets `url` for the next step. */
  async step(): Promise<Page> {
    const page = await this.answer(await openPage(this.url, this.browser));
    this.url = isBank(page) ? page.url : (page.refreshUrl ?? this.link);
    if (this.hasGivenCard && page.alert !== null) this.changeCard();
    return page;
  }

  private async answer(page: Page): Promise<Page> {
    if (isBank(page)) return this.answerBank(page);
    const toBank = page.links.find(({ text }) => text === 'Continue to your bank');
    if (toBank !== undefined && !this.avoidsBank) return openPage(toBank.url, this.browser);
    if (page.forms.length === 0) return page;
    const saved = page.forms.find(({ action }) => /\/saved\/pmt_/.test(action));
    if (saved && !this.hasGivenCard && this.options.takesSavedCard?.()) {
      this.hasGivenCard = true;
      return submitForm(page, saved, {});
    }
    this.hasGivenCard = true;
    // Above the card form there may be the form that leads to the bank.
    const forms = this.avoidsBank ? page.forms.slice(-1) : page.forms;
    return payOn({ ...page, forms }, this.card);
  }

  private async answerBank(page: Page): Promise<Page> {
    const answer = (await this.options.atBank?.()) ?? 'complete';
    const [form] = page.forms;
    if (form !== undefined && (answer === 'complete' || answer === 'fail')) {
      // The button has no label.
      return submitForm(page, form, answer === 'fail' ? { '': 'fail' } : {});
    }
    if (answer === 'other card') {
      this.avoidsBank = true;
      this.card = PAYING_CARD;
    }
    return openPage(this.link, this.browser);
  }

  private changeCard(): void {
    const { nextCard } = this.options;
    if (nextCard === undefined) return;
    const card = nextCard();
    this.hasGivenUp = card === null;
    this.hasGivenCard = false;
    if (card !== null) this.card = card;
  }
}

function isBank({ title }: Page): boolean {
  return title === '3D Secure';
}
