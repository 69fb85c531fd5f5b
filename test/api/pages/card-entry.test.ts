import { expect } from 'vitest';
import { DomainError } from '../../../domain/errors.ts';
import { oneGateway } from '../../support/one-gateway.ts';
import { createStripeGateway } from '../../../gateways/stripe/adapter.ts';
import { TOKENISER_URL, test as apiTest } from '../../support/api-environment.ts';
import type { Answer, ApiEnvironment } from '../../support/api-environment.ts';
import { createSubscription, readSubscription } from '../../support/fixtures/subscriptions.ts';
import { subscriptionIn } from '../../support/fixtures/subscriptions.ts';
import {
  intentBody,
  makeHosted,
  readIntent,
  saveCard,
  setupBody,
} from '../../support/fixtures/payments.ts';
import type { CardEntryRequest } from '../../../gateways/port.ts';
import { makeLink, sell } from '../../support/hosted-pages/links.ts';
import { fieldsOf, linesOf } from '../../support/hosted-pages/page-text.ts';
import { browse, expectSeeOther, headingOf, visit } from '../../support/hosted-pages/visits.ts';
import { postForm } from '../../support/hosted-pages/visits.ts';

/** A Stripe adapter with a URL at which no server listens, so Stripe opens no card page. */
const stripe = createStripeGateway({
  secretKey: 'sk_test_pages',
  accountId: 'acct_pages',
  timeoutMs: 5_000,
  url: 'http://127.0.0.1:2',
});

const test = apiTest.extend(
  'apiOptions',
  { scope: 'file' },
  {
    trustedProxies: 1,
    gateways: oneGateway(stripe),
  },
);

const openUrl = async (api: ApiEnvironment, path: string, body: object): Promise<string> =>
  ((await api.call('POST', path, { body })).json as { fwdUrl: string }).fwdUrl;

const formTokenIn = ({ text }: Answer): string =>
  fieldsOf(text).find(({ name }) => name === 'form_token')?.value ?? '';

/**
 * Opens a checkout's page from `address`. Returns the page, the answer `shown`, and `press`, which submits
 * the form of the page's button from the same address.
 */
async function openCheckout(api: ApiEnvironment, address: string, changes: object = {}) {
  const { fwdUrl } = await createSubscription(api, { ...changes });
  const page = visit(api, fwdUrl, address);
  const shown = await page.look();
  const press = (more: Record<string, string> = {}) =>
    postForm(
      api,
      `${page.path}/card`,
      { form_token: formTokenIn(shown) },
      { 'x-forwarded-for': address, ...more },
    );
  return { ...page, shown, press };
}

test.for([
  [
    'checkout',
    async (api: ApiEnvironment) => (await createSubscription(api)).fwdUrl,
    'As soon as you have entered it, US$19.99 is charged.',
  ],
  [
    'checkout with a trial',
    async (api: ApiEnvironment) =>
      (await createSubscription(api, { trialPeriodCount: 2, trialPeriodInterval: 'WEEK' })).fwdUrl,
    'As soon as you have entered it, your free trial starts. Nothing is charged today.',
  ],
  [
    'payment',
    (api: ApiEnvironment) => openUrl(api, '/payments/create-intent', intentBody()),
    'As soon as you have entered it, US$25.00 is charged.',
  ],
  [
    'setup',
    (api: ApiEnvironment) => openUrl(api, '/setup-method/create', setupBody()),
    'Nothing is charged today.',
  ],
  [
    'update',
    async (api: ApiEnvironment) => {
      const subscription = await subscriptionIn(api, 'ACTIVE');
      return String((await readSubscription(api, subscription))['updatePaymentMethodLink']);
    },
    'Nothing is charged today.',
  ],
] as const)(
  'the %s page of a Stripe merchant shows the offer and names Stripe, and has no card form [D-11]',
  async ([, create, sentence], { api }) => {
    const { look } = visit(api, await create(api));
    const page = await look();
    expect(page.status).toBe(200);
    expect(linesOf(page.text).length).toBeGreaterThan(0);
    expect(page.text).toContain(
      `You enter your card on a page of Stripe, which processes cards for Acme Ltd. ${sentence}`,
    );
    expect(page.text).toContain('<button type="submit">Continue to enter your card</button>');
    expect(fieldsOf(page.text).map(({ name }) => name)).toEqual(['form_token']);
    expect(page.text).not.toContain(TOKENISER_URL);
    expect(page.text).toContain('<p class="note">Test mode: no money moves.</p>');
    expect(page.headers['content-security-policy']).toContain("form-action 'self';");
  },
);

test('the button to Stripe’s card page answers 503, writes nothing and can be pressed again when Stripe opens no card page [D-11]', async ({
  api,
}) => {
  const { press, path } = await openCheckout(api, '198.51.100.201');
  const rows = await api.countRows();
  for (const answer of [await press(), await press()]) {
    expect([answer.status, headingOf(answer)]).toEqual([
      503,
      'Your card cannot be entered right now',
    ]);
    expect(answer.text).toContain(
      'The page of Stripe did not open. Nothing was charged, and nothing is lost.',
    );
    expect(answer.text).toContain(`<form method="post" action="${path}/card">`);
    expect(answer.text).toContain('<button type="submit">Try again</button>');
    expect(formTokenIn(answer)).not.toBe('');
  }
  expect(await api.countRows()).toEqual(rows);
  expect(api.logLines).toContainEqual(
    expect.objectContaining({
      msg: 'the gateway opened no card page',
      gateway: 'stripe:acct_pages',
      kind: 'not_sent',
    }),
  );
});

test('a press of the button to Stripe’s card page is refused from another site and with a wrong form token [D-11]', async ({
  api,
}) => {
  const { press, path } = await openCheckout(api, '198.51.100.202');
  const foreign = await press({ 'sec-fetch-site': 'cross-site' });
  const guessed = await postForm(api, `${path}/card`, { form_token: 'guessed' });
  for (const answer of [foreign, guessed]) {
    expect([answer.status, headingOf(answer)]).toEqual([403, 'This form is not valid any more']);
  }
});

test('the button to Stripe’s card page, and a GET of the button’s URL, redirect to the checkout while the payer’s name is missing [D-11]', async ({
  api,
}) => {
  const { press, path, shown } = await openCheckout(api, '198.51.100.203', { customerDetails: {} });
  expect(shown.text).toContain('Your details');
  expectSeeOther(await press(), path);
  expectSeeOther(await browse(api, `${path}/card`), path);
});

test('the button to Stripe’s card page redirects to the checkout after the payment [D-32]', async ({
  api,
}) => {
  const { press, path, give } = await openCheckout(api, '198.51.100.204');
  expect(headingOf(await give('payment_token=cs_test_paid'))).toBe(
    'Thank you: your payment was received',
  );
  expectSeeOther(await press(), path);
});

test('one IP address can press the button to Stripe’s card page of a merchant in test mode any number of times [D-11]', async ({
  api,
}) => {
  const { press } = await openCheckout(api, '198.51.100.205');
  for (let opened = 0; opened < 31; opened += 1) expect((await press()).status).toBe(503);
});

test('a person’s browser goes straight to Stripe’s page when our page asks nothing, and a bot, a way back and a payer without a name do not [D-11]', async ({
  createApi,
}) => {
  const texts: string[] = [];
  const openCardEntry = async ({ text, locale, cancelUrl }: CardEntryRequest) => {
    texts.push(`${locale}, ${cancelUrl}: ${text}`);
    return { kind: 'redirect', url: 'https://stripe.example/card' } as const;
  };
  const api = await createApi({ gateways: oneGateway({ ...stripe, name: 'fake', openCardEntry }) });
  const person = { headers: { 'sec-fetch-dest': 'document' } };
  const { fwdUrl } = await createSubscription(api, { cycleCount: 1, description: 'Tea' });
  const { pathname: path } = new URL(fwdUrl);
  const straight = await browse(api, path, person);
  expect(straight.text).toContain('https://stripe.example/card');
  expect(straight.text).toContain('As soon as you have entered it, US$19.99 is charged.');
  expect(texts).toEqual([
    `en, ${fwdUrl}?back: Acme Ltd · Tea · Today: US$19.99 · In all: US$19.99 in 1 payment · ` +
      'As soon as you have entered it, US$19.99 is charged. By continuing, you allow Acme Ltd to ' +
      'charge this card later for payments that you agree with them, until you withdraw this permission.',
  ]);
  const unnamed = await createSubscription(api, { customerDetails: {} });
  for (const page of [
    await browse(api, path),
    await browse(api, path, { headers: { ...person.headers, 'sec-purpose': 'prefetch' } }),
    await browse(api, `${path}?back`, person),
    await browse(api, new URL(unnamed.fwdUrl).pathname, person),
  ]) {
    expect([page.status, page.text.includes('stripe.example')]).toEqual([200, false]);
  }
  await browse(api, `${path}/return?payment_error=card_declined&payment_error_id=1`, person);
  expect(texts).toHaveLength(1);
});

test('a person’s browser stays on our page when it offers a saved card [D-11]', async ({
  createApi,
}) => {
  const openCardEntry = async () =>
    ({ kind: 'redirect', url: 'https://stripe.example/card' }) as const;
  const api = await createApi({ gateways: oneGateway({ ...stripe, name: 'fake', openCardEntry }) });
  const { customerId } = await saveCard(api);
  const { fwdUrl } = await createSubscription(api, { customerId });
  const person = { headers: { 'sec-fetch-dest': 'document' } };
  const page = await browse(api, new URL(fwdUrl).pathname, person);
  expect(page.text).toContain('<button type="submit">Pay with Visa 4242</button>');
  expect(page.text).toContain('<button type="submit">Continue to enter your card</button>');
  expect(page.text).not.toContain('stripe.example');
});

test('the payer of a link is not sent to Stripe as the customer of the link, whose e-mail Stripe would show [D-37]', async ({
  createApi,
}) => {
  const known: object[] = [];
  const openCardEntry = async ({ customer }: CardEntryRequest) => {
    known.push([customer.gatewayMethodId, customer.name, customer.email]);
    return { kind: 'redirect', url: 'https://stripe.example/card' } as const;
  };
  const api = await createApi({ gateways: oneGateway({ ...stripe, name: 'fake', openCardEntry }) });
  const { customerId, pmId } = await saveCard(api);
  const order = { customerId, customerDetails: {} };
  const { fwdUrl } = await createSubscription(api, order);
  const sold = await sell(api, await makeLink(api, order));
  for (const path of [new URL(fwdUrl).pathname, sold.checkout]) {
    const page = await browse(api, path);
    const sent = await postForm(api, `${path}/card`, { form_token: formTokenIn(page) });
    expect(sent.text).toContain('https://stripe.example/card');
  }
  expect(known).toEqual([
    [`tok_good_${pmId}`, 'Ada Example', 'ada@example.com'],
    [null, undefined, undefined],
  ]);
});

test('a card of Stripe’s page is taken from an address that reached its limit meanwhile, as Stripe’s event would take it [D-33]', async ({
  createApi,
}) => {
  const api = await createApi({ mode: 'live', trustedProxies: 1, gateways: oneGateway(stripe) });
  const address = '198.51.100.207';
  const { xIntentId, fwdUrl } = await makeHosted(api);
  const { look, comeBack } = visit(api, fwdUrl, address);
  expect((await look()).status).toBe(200);
  for (let payment = 0; payment < 6; payment += 1) {
    const other = visit(api, (await makeHosted(api)).fwdUrl, address);
    for (let id = 0; id < 5; id += 1) {
      await other.comeBack(`payment_error=invalid_cvc&payment_error_id=${id}`);
    }
  }
  expect((await look()).status).toBe(429);
  expect((await comeBack('payment_token=cs_live_paid')).status).toBe(303);
  expect(await readIntent(api, xIntentId)).toMatchObject({ status: 'SUCCESS' });
  expect(api.orders.charges).toHaveLength(1);
});

test('checkout and link pages answer 409 and take no details after the merchant’s gateway was removed [D-20]', async ({
  createApi,
}) => {
  const account = { isRemoved: false };
  const forNewMethods = async () => {
    if (account.isRemoved) throw new DomainError('operation_not_allowed');
    return stripe;
  };
  const api = await createApi({ gateways: { ...oneGateway(stripe), forNewMethods } });
  const checkout = await createSubscription(api, { customerDetails: {} });
  const { fwdUrl } = await createSubscription(api);
  const linkPath = await makeLink(api);
  account.isRemoved = true;
  for (const path of [checkout.fwdUrl, fwdUrl].map((url) => new URL(url).pathname)) {
    const page = await browse(api, path);
    expect([page.status, headingOf(page)]).toEqual([409, 'Cards cannot be entered here yet']);
    expect(fieldsOf(page.text)).toEqual([]);
  }
  const link = await browse(api, linkPath);
  expect([link.status, headingOf(link)]).toEqual([409, 'Cards cannot be entered here yet']);
});
