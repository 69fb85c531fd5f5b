import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { paymentAttempts } from '../../../db/schema/payments.ts';
import { paymentMethods } from '../../../db/schema/customers.ts';
import { formToken } from '../../../api/pages/shared/own-requests.ts';
import { sessionIdOf } from '../../../runtime/payer-links.ts';
import { intentsOf } from '../../support/fixtures/payments.ts';
import { PUBLIC_URL, SESSION_KEY, test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import {
  expectSeeOther,
  hasCardForm,
  headingOf,
  postForm,
  visit,
} from '../../support/hosted-pages/visits.ts';
import {
  declineNext,
  readSubscription,
  subscriptionIn,
} from '../../support/fixtures/subscriptions.ts';

/**
 * The update page of a subscription whose last charge the payer has to confirm with the bank. The gateway is the
 * sandbox or a removed Stripe account. Neither offers such a confirmation.
 */

/**
 * Makes an UNPAID subscription whose last charge needs the payer's confirmation at the bank. Returns it with
 * its update page and the fields of the confirmation form.
 */
async function asked(api: ApiEnvironment) {
  const subscription = await subscriptionIn(api, 'ACTIVE');
  await declineNext(api, subscription, 'authentication_required');
  const read = await readSubscription(api, subscription);
  expect(read['status']).toBe('UNPAID');
  const opened = visit(api, String(read['updatePaymentMethodLink']));
  const token = formToken(SESSION_KEY, sessionIdOf(opened.token));
  return { subscription, ...opened, fields: { form_token: token } };
}

const callsOf = ({ workflows }: ApiEnvironment) => workflows.calls.map(({ name }) => name);

test.for(['sandbox', 'stripe:acct_removed'])(
  'the update page asks for another card when the gateway %s offers no confirmation with the bank [D-30, D-33]',
  async (gateway, { api }) => {
    const { look, path, fields } = await asked(api);
    await api.db.update(paymentMethods).set({ gateway });
    const page = await look();
    expect([page.status, headingOf(page), hasCardForm(page)]).toEqual([
      200,
      'US$19.99 is due',
      true,
    ]);
    expect(page.text).not.toContain('bank');
    const before = callsOf(api);
    expectSeeOther(await postForm(api, `${path}/bank`, fields), `${path}?outcome`);
    expect(callsOf(api)).toEqual(before);
  },
);

test('a confirmation form from another site, or without a valid token, begins no confirmation [D-§4]', async ({
  api,
}) => {
  const { path, fields } = await asked(api);
  const before = callsOf(api);
  for (const [given, headers] of [
    [{}, {}],
    [{ form_token: 'wrong' }, {}],
    [fields, { 'sec-fetch-site': 'cross-site' }],
  ] as const) {
    expect((await postForm(api, `${path}/bank`, given, headers)).status).toBe(403);
  }
  expect(callsOf(api)).toEqual(before);
});

test('the URL of the bank’s page redirects to the update page for an unknown payment [D-33]', async ({
  api,
}) => {
  const { path, request } = await asked(api);
  expectSeeOther(await request(`${path}/bank/in_0000000000000000000000`), `${path}?outcome`);
  expectSeeOther(await request(`${path}/bank/%27`), `${path}?outcome`);
});

test('the return from the bank requests at most 30 look-ups in ten minutes for each address, and always shows the waiting page [D-33]', async ({
  api,
}) => {
  const { subscription, path, request } = await asked(api);
  const [, intent] = await intentsOf(api, subscription.subscriptionId);
  const bankPage = `${path}/bank/${intent!.id}`;
  // The attempt that the payer confirms with the bank, and whose outcome is not known yet.
  await api.db
    .update(paymentAttempts)
    .set({ sessionId: 'cs_1', state: 'UNKNOWN', errorCode: null, settledAt: null })
    .where(eq(paymentAttempts.intentId, intent!.id));
  const before = callsOf(api).length;
  const lookUps = () => callsOf(api).slice(before);
  for (let visits = 1; visits <= 40; visits += 1) {
    const page = await request(`${bankPage}?returned=now`);
    expect([page.status, headingOf(page)]).toEqual([200, 'Your payment is being processed']);
  }
  expect(lookUps()).toEqual(Array.from({ length: 30 }, () => 'recheck'));
  expect(api.workflows.calls.at(-1)?.ref).toEqual(subscription.ref);

  const elsewhere = { headers: { 'x-forwarded-for': '203.0.113.7' } };
  expect((await request(`${bankPage}?returned=now`, elsewhere)).status).toBe(200);
  expect((await request(`${bankPage}?returned=before`, elsewhere)).status).toBe(200);
  expect(lookUps()).toHaveLength(31);
});

test('the URL of the bank’s page answers 404 to a forged update link [D-33]', async ({ api }) => {
  const path = '/update-method/forged';
  expect((await visit(api, PUBLIC_URL + path).request(`${path}/bank/in_1`)).status).toBe(404);
  expect((await postForm(api, `${path}/bank`, {})).status).toBe(404);
});
