import { expect } from 'vitest';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';
import { PAYING_CARD, payOnPage } from '../../tools/scripts/client/payer.ts';
import { dumpOf, everyRun, formsOf } from '../support/canaries.ts';
import { onDevServer as test } from '../support/environment.ts';

/** A payer's details. Each text is only in the field of its name. */
const PAYER = {
  name: 'Canaria Quillfeather',
  email: 'canary.mail@canaries.example',
  contactNumber: '+44 7700 900461',
  customerAddress: {
    addressLine1: '17 Canary Wharfside',
    addressLine2: 'Cagedoor 9',
    city: 'Birdington',
    state: 'Featherland',
    country: 'GB',
    postalCode: 'CN4 7RY',
  },
};
const { country: _, ...address } = PAYER.customerAddress;
const CANARIES = [PAYER.name, PAYER.email, PAYER.contactNumber, ...Object.values(address)];
const CARD = { ...PAYING_CARD, name: PAYER.name };

/** The types of workflows that the life below needs. */
const TYPES = ['subscription', 'payment', 'refund', 'setupMethod', 'webhookEndpoint'];

test('no name, e-mail address, phone number or address of a payer is in a history, a memo, a search attribute or the details of a workflow [D-20]', async ({
  env,
  shop,
}) => {
  const { merchant } = shop;
  const startAt = Date.parse('2027-01-10T00:00:00Z');
  const { testClockId, advance } = await shop.createClock(startAt);
  const { subscriptionId, fwdUrl } = await merchant.post<{
    subscriptionId: string;
    fwdUrl: string;
  }>('/subscription/create', { ...MONTHLY, customerDetails: PAYER, testClockId });
  await payOnPage(fwdUrl, CARD);
  const path = `/subscription/get-subscription/${subscriptionId}`;
  await expect.poll(() => merchant.get(path)).toMatchObject({ status: 'ACTIVE' });
  const decline = { subscriptionId, code: 'card_declined', count: 1 };
  await merchant.post('/test-helpers/decline-next', decline);
  await advance(Date.parse('2027-02-10T00:00:00Z'));
  await merchant.post('/subscription/manual-retry', { subscriptionId });
  await merchant.post('/subscription/edit', { subscriptionId, newAmount: 2_500 });

  const hosted = { amount: 4_900, currency: 'USD', callbackUrl: MONTHLY.callbackUrl };
  const order = await merchant.post<{ xIntentId: string; fwdUrl: string }>(
    '/payments/create-intent',
    { ...hosted, customerDetails: PAYER },
  );
  await payOnPage(order.fwdUrl, CARD);
  await merchant.post('/payments/merchant/refund', { xIntentId: order.xIntentId, amount: 900 });
  const billed = { currency: 'USD', callbackUrl: MONTHLY.callbackUrl, billingDetails: PAYER };
  const setup = await merchant.post<{ fwdUrl: string }>('/setup-method/create', billed);
  await payOnPage(setup.fwdUrl, CARD);

  const runs = await everyRun(env, (types) => TYPES.every((type) => types.includes(type)));
  // The search can fail: ids and amounts are found, and the database has every canary.
  expect(runs.map(({ text }) => text).join('')).toContain(subscriptionId);
  const dump = await dumpOf(env.databaseUrl);
  expect(CANARIES.filter((canary) => !dump.includes(canary))).toEqual([]);
  const found = runs.flatMap(({ type, text }) =>
    CANARIES.flatMap(formsOf)
      .filter((form) => text.includes(form))
      .map((form) => `${type}: ${form}`),
  );
  expect(found).toEqual([]);
});
