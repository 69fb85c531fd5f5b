import type { Locale } from '../../../../domain/locales.ts';
import { PUBLIC_URL } from '../../api-environment.ts';
import type { Answer, ApiEnvironment } from '../../api-environment.ts';
import { setupBody } from '../../fixtures/payments.ts';
import { makeLink, makePaymentLink, openLink } from '../links.ts';
import { browse, postForm, visit } from '../visits.ts';
import type { Visit } from '../visits.ts';
import { CHECKOUT_STATES } from './checkout-states.ts';
import { DECLARATION_STATES } from './declaration-states.ts';
import { NO_ANSWER } from './page-servers.ts';
import type { PageServers, PageStates } from './page-servers.ts';
import {
  card,
  checkout,
  formTokenOf,
  HOUR_MS,
  lookLater,
  NO_DETAILS,
  payment,
  refusal,
  WRONG_DETAILS,
} from './steps.ts';
import { UPDATE_STATES } from './update-states.ts';

async function setup(api: ApiEnvironment, locale: Locale): Promise<Visit> {
  const made = await api.call('POST', '/setup-method/create', { body: setupBody({ locale }) });
  return visit(api, (made.json as { fwdUrl: string }).fwdUrl);
}

/** Each state of the page of a single payment, and of the page that saves a card. */
const ORDER_STATES: PageStates = {
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

/** The page of a link after its form was sent five times from one IP address, each time by a new browser. */
async function busyLink(api: ApiEnvironment, locale: Locale): Promise<Answer> {
  const path = await makeLink(api, { locale, multiUseLimit: 10 });
  const address = '203.0.113.200';
  for (let use = 0; use < 5; use += 1) await (await openLink(api, path, { address })).submit();
  return (await openLink(api, path, { address })).submit();
}

/** Each state of the page of a link. */
const LINK_STATES: PageStates = {
  'link: details': async ({ test }, locale) =>
    (await openLink(test, await makeLink(test, { locale, customerDetails: {} }))).page,
  'link: mistyped details': async ({ test }, locale) =>
    (
      await openLink(test, await makeLink(test, { locale, customerDetails: {} }), {
        keepsCookies: false,
      })
    ).submit(WRONG_DETAILS),
  'link: payment': async ({ test }, locale) =>
    (await openLink(test, await makePaymentLink(test, { locale }))).page,
  'link: gone': async ({ test }, locale) =>
    browse(test, '/l/unknown', { headers: { 'accept-language': locale } }),
  'link: busy': ({ test }, locale) => busyLink(test, locale),
};

/** Presses the button of our page that leads to Stripe's page. */
async function press(api: ApiEnvironment, opened: Visit): Promise<Answer> {
  return postForm(api, `${opened.path}/card`, { form_token: await formTokenOf(opened) });
}

/** Each state of our page that leads to the gateway's own card page, and the page of a merchant without a gateway. */
const GATEWAY_STATES: PageStates = {
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

/** The page at 13:05 UTC for a payer from whose IP address too many cards were declined. */
async function tooMany({ live }: PageServers, locale: Locale): Promise<Answer> {
  const address = '203.0.113.201';
  for (let page = 0; page < 6; page += 1) {
    const { comeBack } = await payment(live, locale, address);
    for (let tried = 0; tried < 5; tried += 1) await comeBack(refusal());
  }
  const { look } = await payment(live, locale, address);
  // The payment's page expires after a day, so the clock is set less than a day ahead.
  live.clock.aheadMs = (Date.UTC(2200, 0, 1, 13, 5, 40) - Date.now()) % (24 * HOUR_MS);
  const answer = await look();
  live.clock.aheadMs = 0;
  return answer;
}

/** Each page that a payer gets if the request is refused or cannot be answered. */
const REFUSAL_STATES: PageStates = {
  'unknown page': ({ test }, locale) =>
    visit(test, `${PUBLIC_URL}/checkout/none`).look({ headers: { 'accept-language': locale } }),
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
    const form = { name: 'x'.repeat(20_000) };
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
export const PAGE_STATES: PageStates = {
  ...CHECKOUT_STATES,
  ...ORDER_STATES,
  ...UPDATE_STATES,
  ...LINK_STATES,
  ...DECLARATION_STATES,
  ...GATEWAY_STATES,
  ...REFUSAL_STATES,
};
