import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { paymentMethods } from '../../../db/schema/customers.ts';
import { TOKENISER_URL, test as apiTest } from '../../support/api-environment.ts';
import type { Answer, ApiEnvironment } from '../../support/api-environment.ts';
import { createFakeGateway } from '../../support/fakes/gateway.ts';
import {
  intentBody,
  makeCustomer,
  readIntent,
  saveCard,
  setupBody,
} from '../../support/fixtures/payments.ts';
import type { SavedMethod } from '../../support/fixtures/payments.ts';
import { createSubscription, readSubscription } from '../../support/fixtures/subscriptions.ts';
import { makeLink, makePaymentLink, sell, openLink } from '../../support/hosted-pages/links.ts';
import { consentOf, fieldsOf } from '../../support/hosted-pages/page-text.ts';
import { alertOf, browse, hasCardForm, headingOf } from '../../support/hosted-pages/visits.ts';
import { expectSeeOther, ownReturn, postForm, visit } from '../../support/hosted-pages/visits.ts';
import { oneGateway } from '../../support/one-gateway.ts';

const { gateway } = createFakeGateway({ card: null, refund: null });

const test = apiTest.extend(
  'apiOptions',
  { scope: 'file' },
  { trustedProxies: 1, gateways: oneGateway({ ...gateway, tokeniserUrl: TOKENISER_URL }) },
);

const PAID = 'Thank you: your payment was received';
const TRIAL = { trialPeriodCount: 1, trialPeriodInterval: 'WEEK' };

/** The words of the button for a saved card; null without one. */
const buttonOf = ({ text }: Answer): string | null =>
  /action="[^"]*\/saved\/[^"]*".*?<button type="submit">([^<]*)</.exec(text)?.[1] ?? null;

/** Presses the button for a saved card at the page `path`. */
function press(api: ApiEnvironment, path: string, page: Answer, pmId: string): Promise<Answer> {
  const token = fieldsOf(page.text).find(({ name }) => name === 'form_token')?.value ?? '';
  return postForm(api, `${path}/saved/${pmId}`, { form_token: token });
}

async function createIntent(api: ApiEnvironment, changes: object) {
  const made = await api.call('POST', '/payments/create-intent', { body: intentBody(changes) });
  return made.json as { xIntentId: string; fwdUrl: string };
}

/** Status and error code of each attempt to charge the subscription, oldest first. */
async function chargesOf(api: ApiEnvironment, subscriptionId: string) {
  const { json } = await api.call('GET', `/subscription/charges/${subscriptionId}`);
  const { data } = json as { data: { status: string; amount: number; errorCode?: string }[] };
  return data.map(({ status, amount, errorCode }) => [status, amount, errorCode ?? null]);
}

test('a customer whom the merchant names pays a subscription with the saved card, once after two clicks [D-11]', async ({
  api,
}) => {
  const { customerId, pmId } = await saveCard(api);
  const { subscriptionId, fwdUrl } = await createSubscription(api, { customerId });
  const { look, path } = visit(api, fwdUrl);
  const page = await look();
  expect(buttonOf(page)).toBe('Pay with Visa 4242');
  expect(page.text).toContain('<h2>Or use another card:</h2>');
  expect(hasCardForm(page)).toBe(true);
  expect(consentOf(page.text)).toContain('you allow Acme Ltd to charge this card for each payment');
  for (let click = 0; click < 2; click += 1) {
    expectSeeOther(await press(api, path, page, pmId), path);
  }
  expect(headingOf(await look())).toBe(PAID);
  expect(await readSubscription(api, { subscriptionId })).toMatchObject({
    status: 'ACTIVE',
    customerId,
    paymentMetadata: { cardMetadata: { lastFourDigit: '4242' } },
  });
  expect(await chargesOf(api, subscriptionId)).toEqual([['SUCCESS', 1_999, null]]);
  const methods = await api.db
    .select({ id: paymentMethods.id, status: paymentMethods.status })
    .from(paymentMethods)
    .where(eq(paymentMethods.customerId, customerId));
  expect(methods).toEqual([{ id: pmId, status: 'LIVE' }]);
});

test('a saved card starts a trial without a charge, and pays a single payment [D-11]', async ({
  api,
}) => {
  const { customerId, pmId } = await saveCard(api);
  const trial = await createSubscription(api, { customerId, ...TRIAL });
  const { look, path } = visit(api, trial.fwdUrl);
  const page = await look();
  expect(buttonOf(page)).toBe('Start free trial with Visa 4242');
  expectSeeOther(await press(api, path, page, pmId), path);
  expect(headingOf(await look())).toBe('Your free trial has started');
  expect(await chargesOf(api, trial.subscriptionId)).toEqual([]);

  const { xIntentId, fwdUrl } = await createIntent(api, { customerId });
  const payment = visit(api, fwdUrl);
  const asked = await payment.look();
  expect(buttonOf(asked)).toBe('Pay with Visa 4242');
  expectSeeOther(await press(api, payment.path, asked, pmId), payment.path);
  expect(headingOf(await payment.look())).toBe(PAID);
  expect(await readIntent(api, xIntentId)).toMatchObject({ status: 'SUCCESS', amount: 2_500 });
});

test('a saved card that is declined is not offered again on the page, which takes another card [D-11, D-§4]', async ({
  api,
}) => {
  const { customerId, pmId } = await saveCard(api);
  const { subscriptionId, fwdUrl } = await createSubscription(api, { customerId });
  const { look, path, give } = visit(api, fwdUrl);
  const page = await look();
  api.workflows.faults.card = 'insufficient_funds';
  expectSeeOther(await press(api, path, page, pmId), path);
  api.workflows.faults.card = null;
  const declined = await look();
  expect(alertOf(declined)).toContain('Your payment was declined and nothing was charged.');
  expect([buttonOf(declined), hasCardForm(declined)]).toEqual([null, true]);
  // The form of the first page, as after a step back.
  await press(api, path, page, pmId);
  expect(headingOf(await give('payment_token=tok_good_other_1111'))).toBe(PAID);
  expect(await chargesOf(api, subscriptionId)).toEqual([
    ['FAILED', 1_999, 'insufficient_funds'],
    ['SUCCESS', 1_999, null],
  ]);
});

test('a saved card with an unknown outcome leads to the waiting page, which leads back [D-40]', async ({
  api,
}) => {
  const { customerId, pmId } = await saveCard(api);
  const { fwdUrl } = await createSubscription(api, { customerId });
  const { look, path, request } = visit(api, fwdUrl);
  const page = await look();
  api.workflows.faults.card = 'unknown';
  const waiting = await press(api, path, page, pmId);
  expect(headingOf(waiting)).toBe('Your payment is being processed');
  const shownAt = `${path}/saved/${pmId}`;
  expect(waiting.text).toContain(`data-url="${shownAt}"`);
  expectSeeOther(await request(shownAt), path);
  expect(headingOf(await look())).toBe('Your payment is being processed');
});

/** Creates a page on which the saved card must not be offered, and returns the page's path. */
const WITHOUT: [string, (api: ApiEnvironment, card: SavedMethod) => Promise<string>][] = [
  ['a subscription whose customer has typed the same e-mail', async (api) => fwdPath(api, {})],
  [
    'a subscription of another customer',
    async (api) => fwdPath(api, { customerId: await makeCustomer(api) }),
  ],
  [
    'a session that saves a card',
    async (api, { customerId }) => {
      const body = setupBody({ customerId });
      const { json } = await api.call('POST', '/setup-method/create', { body });
      return new URL((json as { fwdUrl: string }).fwdUrl).pathname;
    },
  ],
  [
    'a link that names the customer',
    async (api, { customerId }) => (await sell(api, await makeLink(api, { customerId }))).checkout,
  ],
  [
    'a link to pay that names the customer',
    async (api, { customerId }) => {
      const { submit } = await openLink(api, await makePaymentLink(api, { customerId }));
      return String((await submit()).headers['location']);
    },
  ],
  [
    'a customer who has bought by a link that names the customer',
    async (api, { customerId }) => {
      await sell(api, await makeLink(api, { customerId }));
      return fwdPath(api, { customerId });
    },
  ],
  [
    'a customer without a phone number, which the page asks for',
    async (api, { customerId }) => fwdPath(api, { customerId, phoneNumberRequired: true }),
  ],
];

const fwdPath = async (api: ApiEnvironment, changes: Record<string, unknown>): Promise<string> =>
  new URL((await createSubscription(api, changes)).fwdUrl).pathname;

test.for(WITHOUT)(
  'a saved card is neither offered nor taken on the page of %s [D-11, D-37]',
  async ([, create], { api }) => {
    const card = await saveCard(api);
    const path = await create(api, card);
    const page = await browse(api, path);
    expect([page.status, buttonOf(page)]).toEqual([200, null]);
    const sent = [api.workflows.calls.length, api.orders.calls.length];
    // A page with a card form has no form of ours. The details form of another page of the session has the token.
    const typed = await browse(api, `${path}?email`);
    const withToken = fieldsOf(page.text).some(({ name }) => name === 'form_token') ? page : typed;
    const answer = await press(api, path, withToken, card.pmId);
    expect(answer.status).toBe(303);
    expect([api.workflows.calls.length, api.orders.calls.length]).toEqual(sent);
  },
);

test.for([
  ['was not used yet', { status: 'PENDING' }],
  ['was replaced', { status: 'DELETED' }],
  ['has expired', { expiryMonth: 1, expiryYear: 2020 }],
  ['is at another gateway', { gateway: 'other' }],
] as const)('a card that %s is not offered [D-11]', async ([, change], { api }) => {
  const { customerId, pmId } = await saveCard(api);
  await api.db.update(paymentMethods).set(change).where(eq(paymentMethods.id, pmId));
  expect(buttonOf(await browse(api, await fwdPath(api, { customerId })))).toBe(null);
});

test('a saved card is taken only by the form of its page: not by the return URL, another site, or another customer’s id [D-11, D-44]', async ({
  api,
}) => {
  const { customerId, pmId } = await saveCard(api);
  const other = await saveCard(api);
  const { subscriptionId, ref, fwdUrl } = await createSubscription(api, { customerId });
  const { look, path } = visit(api, fwdUrl);
  const page = await look();
  const byUrl = ownReturn(path, `payment_token=${encodeURIComponent(`saved:${pmId}`)}`);
  expectSeeOther(await browse(api, byUrl), path);
  const foreign = await postForm(api, `${path}/saved/${pmId}`, { form_token: 'guessed' });
  expect([foreign.status, headingOf(foreign)]).toEqual([403, 'This form is not valid any more']);
  expectSeeOther(await press(api, path, page, other.pmId), path);
  const paymentToken = `saved:${other.pmId}`;
  const command = { paymentToken, commandId: paymentToken, checkoutSessionId: 'cs_1' };
  expect(await api.workflows.execute(ref, { kind: 'completeCheckout', ...command })).toEqual({
    kind: 'result',
    result: { kind: 'checkout', outcome: 'declined', errorCode: 'processing_error' },
  });
  expect(await readSubscription(api, { subscriptionId })).toMatchObject({ status: 'CREATED' });
  expect(await chargesOf(api, subscriptionId)).toEqual([]);
});
