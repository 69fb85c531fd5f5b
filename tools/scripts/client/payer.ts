import { setTimeout as sleep } from 'node:timers/promises';
import { openPage, submitForm } from './browser.ts';
import type { Page } from './browser.ts';

/** The values that a payer types into the card form. */
export interface TypedCard {
  readonly name: string;
  readonly number: string;
  readonly expiry: string;
  readonly cvc: string;
}

export const PAYING_CARD: TypedCard = {
  name: 'Ada Example',
  number: '4242 4242 4242 4242',
  expiry: '12 / 34',
  cvc: '123',
};

/** The same payer with another card. */
export function cardOf(number: string): TypedCard {
  return { ...PAYING_CARD, number };
}

/** Longest wait in ms for the outcome of a card. After it, {@link payOn} returns the page that still waits. */
const DECIDED_WITHIN_MS = 60_000;
const RELOAD_AFTER_MS = 250;

/**
 * Opens a hosted checkout and submits its card form, whose fields are found by their labels. Returns the page with the
 * outcome: the result, or after a decline the form with an alert.
 */
export async function payOnPage(fwdUrl: string, card: TypedCard = PAYING_CARD): Promise<Page> {
  return payOn(await openPage(fwdUrl), card);
}

/**
 * Like {@link payOnPage}, on a page that is already open. On a busy machine the page may wait for the outcome. Then
 * this function reloads the page, as the payer's browser does.
 */
export async function payOn(page: Page, card: TypedCard = PAYING_CARD): Promise<Page> {
  const waitUntil = performance.now() + DECIDED_WITHIN_MS;
  let shown = await enterCardOn(page, card);
  while (isReloading(shown) && performance.now() < waitUntil) {
    await sleep(RELOAD_AFTER_MS);
    shown = await openPage(shown.refreshUrl, page.browser);
  }
  return shown;
}

/** True if the page redirects to its own site. The page that leads to the page of a gateway does not. */
function isReloading(page: Page): page is Page & { refreshUrl: string } {
  return page.refreshUrl !== null && new URL(page.refreshUrl).origin === new URL(page.url).origin;
}

/**
 * Submits the card form of an open page. Returns the page after the redirects, also if it waits for the outcome. Fills
 * in only the card fields that the form has. A form that only opens the gateway's page has none.
 */
export async function enterCardOn(page: Page, card: TypedCard = PAYING_CARD): Promise<Page> {
  // Above the form for a new card there may be the form that pays with the saved one.
  const form = page.forms.find(({ button }) => !/^Pay with .* again$/.test(button ?? ''));
  if (!form) throw new Error(`no form on "${page.title}" (${page.status})`);
  const typed: Record<string, string> = {
    'Name on card': card.name,
    // The name of this field on the page of the Stripe double.
    'Cardholder name': card.name,
    'Card number': card.number,
    Expiry: card.expiry,
    CVC: card.cvc,
  };
  const asked = form.fields.flatMap(({ label }) => {
    const value = typed[label];
    return value === undefined ? [] : [[label, value]];
  });
  return submitForm(page, form, Object.fromEntries(asked));
}
