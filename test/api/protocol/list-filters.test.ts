import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { paymentIntents } from '../../../db/schema/payments.ts';
import { test as apiTest, subscriptionBody } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { intentBody } from '../../support/fixtures/payments.ts';

const listed = async (api: ApiEnvironment, path: string, id: string) => {
  const answer = await api.call('GET', path);
  expect(answer.status).toBe(200);
  return (answer.json as { data: Record<string, string>[] }).data.map((record) => record[id]);
};

/** Creates the records that the tests list. Returns their ids by name. */
const test = apiTest.extend('made', { scope: 'file' }, async ({ api }) => {
  const made: Record<string, string> = {};
  const create = async (name: string, path: string, id: string, body: object) => {
    const answer = await api.call('POST', path, { body });
    made[name] = (answer.json as Record<string, string>)[id]!;
  };
  const ada = { customerDetails: { name: 'Ada', email: 'Ada@Example.com' } };
  const bob = { customerDetails: { name: 'Bob', email: 'bob@example.com' } };
  await create('ada', '/customer/create', 'customerId', ada);
  await create('bob', '/customer/create', 'customerId', bob);
  const adas = { ...ada, customerId: made['ada'] };
  const trial = { trialPeriodCount: 7, trialPeriodInterval: 'DAY' };
  const subscribe = (name: string, changes: object) =>
    create(
      name,
      '/subscription/create',
      'subscriptionId',
      subscriptionBody({ ...trial, ...changes }),
    );
  const pay = (name: string, changes: object) =>
    create(name, '/payments/create-intent', 'xIntentId', intentBody(changes));
  await subscribe('first', { ...adas, receiptId: 'order-1' });
  await subscribe('second', { ...bob, receiptId: 'order-2' });
  await pay('open', { ...adas, receiptId: 'order-3' });
  await pay('expired', { ...bob, receiptId: 'order-4' });
  await api.db
    .update(paymentIntents)
    .set({ checkoutExpiresAt: 1_000 })
    .where(eq(paymentIntents.id, made['expired']!));
  return made;
});

test('a list of subscriptions has only those that match every filter [D-§7]', async ({
  api,
  made,
}) => {
  const ids = (query: string) => listed(api, `/subscription?${query}`, 'subscriptionId');
  expect(await ids('email=ADA@example.com')).toEqual([made['first']]);
  expect(await ids(`customerId=${made['ada']}`)).toEqual([made['first']]);
  expect(await ids('receiptId=order-2')).toEqual([made['second']]);
  expect(await ids('status=CREATED')).toEqual([made['second'], made['first']]);
  expect(await ids('status=ACTIVE')).toEqual([]);
  expect(await ids('status=ACTIVE,CREATED')).toEqual([made['second'], made['first']]);
  expect(await ids('status=ACTIVE&status=CREATED')).toEqual([made['second'], made['first']]);
  expect(await ids('status=ACTIVE&status=UNPAID,PAUSED')).toEqual([]);
  expect(await ids(`customerId=${made['ada']}&receiptId=order-2`)).toEqual([]);
});

test('a list of payments has only those that match every filter [D-§7]', async ({ api, made }) => {
  const ids = (query: string) => listed(api, `/payments?${query}`, 'xIntentId');
  expect(await ids('email=bob@example.com')).toEqual([made['expired']]);
  expect(await ids(`customerId=${made['ada']}`)).toEqual([made['open']]);
  expect(await ids('receiptId=order-4')).toEqual([made['expired']]);
  expect(await ids(`subscriptionId=${made['first']}`)).toEqual([]);
});

test('a list of payments filters by the status that a read shows [D-§7, D-41]', async ({
  api,
  made,
}) => {
  const ids = (status: string) => listed(api, `/payments?status=${status}`, 'xIntentId');
  const read = await api.call('GET', `/payments/get-intent/${made['expired']}`);
  expect(read.json).toMatchObject({ xIntentId: made['expired'], status: 'CANCELLED' });
  expect(await ids('CANCELLED')).toEqual([made['expired']]);
  expect(await ids('CREATED')).toEqual([made['open']]);
  expect(await ids('SUCCESS')).toEqual([]);
  expect(await ids('SUCCESS,CANCELLED,CREATED')).toEqual([made['expired'], made['open']]);
});

test('a status filter with one unknown value among several is refused [D-10]', async ({ api }) => {
  const answer = await api.call('GET', '/refund?status=SUCCEEDED,PAID');
  expect([answer.status, answer.json]).toEqual([
    400,
    {
      errorCode: 'bad_request',
      errorDescription:
        'status: must be one of CREATED, SENDING, UNKNOWN, PENDING, REVIEW, SUCCEEDED, REFUSED, or several with commas',
    },
  ]);
});

test.for(['/subscription', '/payments'])(
  'a list request with an unknown status is refused: %s [D-10]',
  async (path, { api }) => {
    const known = await api.call('GET', `${path}?status=CREATED&status=active`);
    expect(known.status).toBe(400);
    const answer = await api.call('GET', `${path}?status=active`);
    expect(answer.status).toBe(400);
    expect(answer.json).toMatchObject({
      errorCode: 'bad_request',
      errorDescription: expect.stringMatching(/^status: must be one of CREATED, /) as string,
    });
  },
);

test('both paths to read a payment intent answer the same bytes [D-§7]', async ({ api, made }) => {
  const texts = await Promise.all(
    ['v2/', ''].map((version) => api.call('GET', `/payments/${version}get-intent/${made['open']}`)),
  );
  expect(texts[0]?.status).toBe(200);
  expect(texts[0]?.text).toBe(texts[1]?.text);
});

test('a hosted payment is created without customerDetails, and a read shows an empty object [D-11]', async ({
  api,
}) => {
  const { customerDetails: _, ...body } = intentBody() as { customerDetails: object };
  const answer = await api.call('POST', '/payments/create-intent', { body });
  expect(answer.status).toBe(200);
  const { xIntentId } = answer.json as { xIntentId: string };
  const { json } = await api.call('GET', `/payments/v2/get-intent/${xIntentId}`);
  expect(json).toMatchObject({ customerDetails: {} });
});
