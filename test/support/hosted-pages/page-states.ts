import { changeSettings } from '../../../db/repositories/merchants/settings.ts';
import { DomainError } from '../../../domain/errors.ts';
import type { Locale } from '../../../domain/locales.ts';
import type { CardEntryOutcome } from '../../../gateways/port.ts';
import { oneGateway } from '../../../gateways/registry.ts';
import { mistypedPage } from '../../../gateways/sandbox/mistyped-page.tsx';
import { createStripeGateway } from '../../../gateways/stripe/adapter.ts';
import { languageOf } from '../../../page-parts/language.ts';
import { updateMethodLink } from '../../../runtime/update-links.ts';
import { PUBLIC_URL, SESSION_KEY } from '../api-environment.ts';
import type { Answer, ApiEnvironment, ApiOptions } from '../api-environment.ts';
import { intentBody, setupBody } from '../fixtures/payments.ts';
import { createSubscription, declineNext, readSubscription } from '../fixtures/subscriptions.ts';
import { createClock } from '../fixtures/test-clocks.ts';
import { makeLink, makePaymentLink, openLink } from './links.ts';
import { fieldsOf } from './page-text.ts';
import { browse, postForm, visit } from './visits.ts';
import type { Visit } from './visits.ts';

/** The servers whose pages are shown. Payers enter cards at `stripe` on the gateway's own page. */
export interface PageServers {
  readonly test: ApiEnvironment;
  readonly live: ApiEnvironment;
  readonly stripe: ApiEnvironment;
  /** The outcome of the next opening of Stripe's page, and whether the merchant of `stripe` has no gateway. */
  readonly entry: { outcome: CardEntryOutcome; isRemoved: boolean };
}

export interface PageState {
  readonly name: string;
  /** Brings a new record to the state, and returns its page in the locale. */
  readonly show: (servers: PageServers, locale: Locale) => Promise<Answer>;
}

const HOUR_MS = 3_600_000;
const NO_ANSWER = { kind: 'unknown', reason: 'asked for' } as const;
const NOON = Date.UTC(2027, 0, 31, 12);
const PRODUCT = { name: 'Garden Letters', description: 'One letter a month.' };
const BRANDING = {
  logoUrl: 'https://shop.example/logo.svg',
  colour: '#0b6b3a',
  termsUrl: 'https://shop.example/terms',
  supportUrl: 'https://shop.example/help',
};
const WRONG_DETAILS = { name: 'Ada Example', email: 'ada@', contactNumber: '7946' };

export async function openPageServers(
  createApi: (options: ApiOptions) => Promise<ApiEnvironment>,
): Promise<PageServers> {
  const entry: PageServers['entry'] = { outcome: NO_ANSWER, isRemoved: false };
  const stripe = {
    ...createStripeGateway({
      secretKey: 'sk_test_pages',
      accountId: 'acct_pages',
      timeoutMs: 5_000,
      url: 'http://127.0.0.1:2',
    }),
    name: 'fake',
    openCardEntry: async () => entry.outcome,
  };
  const forNewMethods = async () => {
    if (entry.isRemoved) throw new DomainError('operation_not_allowed');
    return stripe;
  };
  return {
    test: await createApi({ trustedProxies: 1 }),
    live: await createApi({ trustedProxies: 1, mode: 'live' }),
    stripe: await createApi({
      trustedProxies: 1,
      gateways: { ...oneGateway(stripe), forNewMethods },
    }),
    entry,
  };
}

/** Requests a page with the locale as the browser's language. */
const lookIn = (locale: Locale, { look }: Visit) =>
  look({ headers: { 'accept-language': locale } });

/** Requests the page while the server's clock is ahead. */
async function lookLater(api: ApiEnvironment, { look }: Visit, hours: number): Promise<Answer> {
  api.clock.aheadMs = hours * HOUR_MS;
  const answer = await look();
  api.clock.aheadMs = 0;
  return answer;
}

let cards = 0;
/** The return of a card that the gateway refused. */
function refusal(): string {
  cards += 1;
  return `payment_error=card_declined&payment_error_id=${cards}`;
}

/** The return of a new card, whose token begins with `text` and ends with the card's last four digits. */
function card(text: string): string {
  cards += 1;
  return `payment_token=tok_${text}_${cards}_1111`;
}

async function giveRefusedCards({ give }: Visit, count: number): Promise<void> {
  for (let tried = 0; tried < count; tried += 1) await give(refusal());
}

type Checkout = Visit & Awaited<ReturnType<typeof createSubscription>>;

/** Creates a subscription; in test mode on a clock that shows noon of 31 January 2027. */
async function checkout(
  api: ApiEnvironment,
  locale: Locale,
  changes: Record<string, unknown> = {},
): Promise<Checkout> {
  const isTest = api.merchant.keyId.includes('test');
  const subscription = await createSubscription(api, {
    locale,
    productPage: PRODUCT,
    ...(isTest ? { testClockId: await createClock(api, NOON) } : {}),
    ...changes,
  });
  return { ...subscription, ...visit(api, subscription.fwdUrl) };
}

/** As {@link checkout}, paid. */
async function paid(...given: Parameters<typeof checkout>): Promise<Checkout> {
  const opened = await checkout(...given);
  await opened.give(card('good'));
  return opened;
}

async function command(api: ApiEnvironment, name: string, { subscriptionId }: Checkout) {
  const path = `/subscription/merchant/${name}`;
  const { status, text } = await api.call('POST', path, { body: { subscriptionId } });
  if (status !== 200) throw new Error(text);
}

/** Opens the page for replacing the card of a paid subscription. With a decline code, its next cycle is declined. */
async function update(
  api: ApiEnvironment,
  locale: Locale,
  code: string | null = null,
): Promise<Visit & { subscription: Checkout }> {
  const subscription = await paid(api, locale);
  if (code !== null) await declineNext(api, subscription, code);
  const { updatePaymentMethodLink } = await readSubscription(api, subscription);
  return { subscription, ...visit(api, String(updatePaymentMethodLink)) };
}

async function payment(api: ApiEnvironment, locale: Locale) {
  const body = intentBody({ locale, description: 'Two garden chairs' });
  const made = await api.call('POST', '/payments/create-intent', { body });
  const { xIntentId, fwdUrl } = made.json as { xIntentId: string; fwdUrl: string };
  return { xIntentId, ...visit(api, fwdUrl) };
}

async function setup(api: ApiEnvironment, locale: Locale): Promise<Visit> {
  const made = await api.call('POST', '/setup-method/create', { body: setupBody({ locale }) });
  return visit(api, (made.json as { fwdUrl: string }).fwdUrl);
}

/** The page of a link after its form was sent five times from one address, each time by a new browser. */
async function busyLink(api: ApiEnvironment, locale: Locale): Promise<Answer> {
  const path = await makeLink(api, { locale, multiUseLimit: 10 });
  const address = '203.0.113.200';
  for (let use = 0; use < 5; use += 1) await (await openLink(api, path, { address })).submit();
  return (await openLink(api, path, { address })).submit();
}

/** Presses the button of our page that leads to Stripe's page. */
async function press(api: ApiEnvironment, { path, look }: Visit): Promise<Answer> {
  const token = fieldsOf((await look()).text).find(({ name }) => name === 'form_token');
  return postForm(api, `${path}/card`, { form_token: token?.value ?? '' });
}

function mistyped(locale: Locale): Answer {
  const { say, money } = languageOf(locale);
  const form = new URLSearchParams({
    session: 'cs_1',
    return_url: `${PUBLIC_URL}/checkout/1/return`,
    locale,
    merchant: 'Acme Ltd',
    button: say('pay', { amount: money(1_999, 'USD') }),
    name: 'Ada Example',
    number: '4242 4242 4242 424',
    expiry: '13 / 34',
  });
  const { status, headers, body } = mistypedPage(
    form,
    { number: 'numberTooShort', expiry: 'expiryUnreadable', cvc: 'cvcThree' },
    { returnUrl: new URL(PUBLIC_URL), nonce: 'bm9uY2U=' },
  );
  return { status, headers, text: body, json: null };
}

/** The page of an address that has too many declined cards, at 13:05 UTC. */
async function tooMany({ live }: PageServers, locale: Locale): Promise<Answer> {
  const address = '203.0.113.201';
  const openPayment = async () => {
    const body = intentBody({ locale });
    const made = await live.call('POST', '/payments/create-intent', { body });
    return visit(live, (made.json as { fwdUrl: string }).fwdUrl, address);
  };
  for (let page = 0; page < 6; page += 1) {
    const { comeBack } = await openPayment();
    for (let tried = 0; tried < 5; tried += 1) await comeBack(refusal());
  }
  const { look } = await openPayment();
  // The payment is open for a day.
  live.clock.aheadMs = (Date.UTC(2200, 0, 1, 13, 5, 40) - Date.now()) % (24 * HOUR_MS);
  const answer = await look();
  live.clock.aheadMs = 0;
  return answer;
}

const TRIAL = { trialPeriodCount: 7, trialPeriodInterval: 'DAY' };
const NO_DETAILS = { customerDetails: {}, phoneNumberRequired: true };

/** What a payer sees on the page of a subscription, a payment or a setup session. */
const OF_CARD_PAGES: Readonly<Record<string, PageState['show']>> = {
  'checkout: details': async ({ test }, locale) =>
    (await checkout(test, locale, NO_DETAILS)).look(),
  'checkout: mistyped details': async ({ test }, locale) =>
    (await checkout(test, locale, NO_DETAILS)).post(WRONG_DETAILS),
  'checkout: card': async ({ test }, locale) => (await checkout(test, locale)).look(),
  'checkout: live': async ({ live }, locale) => (await checkout(live, locale)).look(),
  'checkout: trial': async ({ test }, locale) => (await checkout(test, locale, TRIAL)).look(),
  'checkout: brand': async ({ test }, locale) => {
    const { look } = await checkout(test, locale);
    const { merchantId } = test.merchant;
    await changeSettings(test.db, merchantId, { branding: BRANDING });
    const answer = await look();
    await changeSettings(test.db, merchantId, { branding: {} });
    return answer;
  },
  'checkout: first amount': async ({ test }, locale) =>
    (await checkout(test, locale, { upfrontAmount: 500 })).look(),
  'checkout: mistyped card': async (_, locale) => mistyped(locale),
  'checkout: declined': async ({ test }, locale) =>
    (await checkout(test, locale)).give(card('card_declined')),
  'checkout: locked': async ({ live }, locale) => {
    const opened = await checkout(live, locale);
    await giveRefusedCards(opened, 5);
    return opened.look();
  },
  'checkout: processing': async ({ test }, locale) =>
    (await checkout(test, locale)).comeBack(card('unknown')),
  'checkout: paid': async ({ test }, locale) => (await paid(test, locale)).look(),
  'checkout: trial started': async ({ test }, locale) => (await paid(test, locale, TRIAL)).look(),
  'checkout: only payment': async ({ test }, locale) =>
    (await paid(test, locale, { cycleCount: 1 })).look(),
  'checkout: ended after payments': async ({ test }, locale) => {
    const ended = await paid(test, locale);
    await command(test, 'cancel', ended);
    return ended.look();
  },
  'checkout: paused': async ({ test }, locale) => {
    const paused = await paid(test, locale);
    await command(test, 'pause', paused);
    return paused.look();
  },
  'checkout: expired': async ({ live }, locale) =>
    lookLater(live, await checkout(live, locale), 25),
  'checkout: cancelled': async ({ test }, locale) => {
    const cancelled = await checkout(test, locale);
    await command(test, 'cancel', cancelled);
    return cancelled.look();
  },
  'payment: card': async ({ test }, locale) => (await payment(test, locale)).look(),
  'payment: declined': async ({ test }, locale) => (await payment(test, locale)).give(refusal()),
  'payment: processing': async ({ test }, locale) =>
    (await payment(test, locale)).comeBack(card('unknown')),
  'payment: paid': async ({ test }, locale) => (await payment(test, locale)).give(card('good')),
  'payment: refunded': async ({ test }, locale) => {
    const { xIntentId, give, look } = await payment(test, locale);
    await give(card('good'));
    await test.call('POST', '/payments/merchant/refund', { body: { xIntentId } });
    return look();
  },
  'payment: expired': async ({ live }, locale) => lookLater(live, await payment(live, locale), 25),
  'payment: cancelled': async ({ test }, locale) => {
    const { xIntentId, look } = await payment(test, locale);
    await test.call('POST', `/payments/cancel/${xIntentId}`);
    return look();
  },
  'setup: card': async ({ test }, locale) => (await setup(test, locale)).look(),
  'setup: declined': async ({ test }, locale) => (await setup(test, locale)).give(refusal()),
  'setup: saved': async ({ test }, locale) => (await setup(test, locale)).give(card('good')),
  'setup: expired': async ({ live }, locale) => lookLater(live, await setup(live, locale), 25),
};

const OF_CARD_REPLACEMENT: Readonly<Record<string, PageState['show']>> = {
  'update: card': async ({ test }, locale) => (await update(test, locale)).look(),
  'update: payment due': async ({ test }, locale) =>
    (await update(test, locale, 'card_declined')).look(),
  'update: declined': async ({ test }, locale) => (await update(test, locale)).give(refusal()),
  'update: saved, payment declined': async ({ test }, locale) =>
    (await update(test, locale, 'card_declined')).give(card('insufficient_funds')),
  'update: last card saved': async ({ live }, locale) => {
    const opened = await update(live, locale, 'card_declined');
    await giveRefusedCards(opened, 4);
    return opened.give(card('insufficient_funds'));
  },
  'update: bank asks': async ({ stripe }, locale) =>
    (await update(stripe, locale, 'authentication_required')).look(),
  'update: processing': async ({ test }, locale) =>
    (await update(test, locale, 'card_declined')).comeBack(card('unknown')),
  'update: replaced': async ({ test }, locale) => (await update(test, locale)).give(card('good')),
  'update: paid': async ({ test }, locale) =>
    (await update(test, locale, 'card_declined')).give(card('good')),
  'update: expired': async ({ test }, locale) =>
    lookLater(test, await update(test, locale), 24 * 32),
  'update: not begun': async ({ test }, locale) => {
    const { ref } = await checkout(test, locale);
    const signer = { publicUrl: PUBLIC_URL, sessionKey: SESSION_KEY };
    const link = updateMethodLink(signer, { ...ref, paymentMethodId: null }, Date.now());
    return visit(test, link).look();
  },
  'update: paused': async ({ test }, locale) => {
    const { subscription, look } = await update(test, locale);
    await command(test, 'pause', subscription);
    return look();
  },
  'update: ended': async ({ test }, locale) => {
    const { subscription, look } = await update(test, locale);
    await command(test, 'cancel', subscription);
    return look();
  },
};

const OF_LINKS_AND_GATEWAYS: Readonly<Record<string, PageState['show']>> = {
  'link: details': async ({ test }, locale) =>
    (await openLink(test, await makeLink(test, { locale, customerDetails: {} }))).page,
  'link: mistyped details': async ({ test }, locale) =>
    (await openLink(test, await makeLink(test, { locale, customerDetails: {} }))).submit(
      WRONG_DETAILS,
    ),
  'link: payment': async ({ test }, locale) =>
    (await openLink(test, await makePaymentLink(test, { locale }))).page,
  'link: gone': async ({ test }, locale) =>
    browse(test, '/l/unknown', { headers: { 'accept-language': locale } }),
  'link: busy': ({ test }, locale) => busyLink(test, locale),
  'Stripe: checkout': async ({ stripe }, locale) => (await checkout(stripe, locale)).look(),
  'Stripe: declined': async ({ stripe }, locale) =>
    (await checkout(stripe, locale)).give(refusal()),
  'Stripe: no page': async ({ stripe, entry }, locale) => {
    entry.outcome = NO_ANSWER;
    return press(stripe, await checkout(stripe, locale));
  },
  'Stripe: leave': async ({ stripe, entry }, locale) => {
    entry.outcome = { kind: 'redirect', url: 'https://stripe.example/card' };
    return press(stripe, await checkout(stripe, locale));
  },
  'no gateway': async ({ stripe, entry }, locale) => {
    const { look } = await checkout(stripe, locale);
    entry.isRemoved = true;
    const answer = await look();
    entry.isRemoved = false;
    return answer;
  },
};

const OF_REFUSALS: Readonly<Record<string, PageState['show']>> = {
  'unknown page': ({ test }, locale) => lookIn(locale, visit(test, `${PUBLIC_URL}/checkout/none`)),
  'too many tries': tooMany,
  'one more step': async ({ test }, locale) => {
    const { request, path } = await checkout(test, locale);
    return request(`${path}/return?payment_token=tok_without_cookie`);
  },
  'form of another site': async ({ test }, locale) =>
    (await checkout(test, locale, NO_DETAILS)).post({ form_token: 'guessed' }),
  'page in a page': async ({ test }, locale) =>
    (await checkout(test, locale)).look({
      headers: {
        'accept-language': locale,
        'sec-fetch-site': 'cross-site',
        'sec-fetch-dest': 'iframe',
      },
    }),
  'unreadable form': async ({ test }, locale) => {
    const { path } = await checkout(test, locale, NO_DETAILS);
    const form = { name: 'x'.repeat(10_000) };
    return postForm(test, path, form, { 'accept-language': locale });
  },
  unavailable: async ({ test }, locale) => {
    const { comeBack } = await checkout(test, locale);
    test.workflows.faults.isDown = true;
    const answer = await comeBack(card('good'));
    test.workflows.faults.isDown = false;
    return answer;
  },
};

/** Every state of the hosted pages that looks different from the others. */
export const PAGE_STATES: readonly PageState[] = Object.entries({
  ...OF_CARD_PAGES,
  ...OF_CARD_REPLACEMENT,
  ...OF_LINKS_AND_GATEWAYS,
  ...OF_REFUSALS,
}).map(([name, show]) => ({ name, show }));
