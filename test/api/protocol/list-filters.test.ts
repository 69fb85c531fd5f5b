import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { paymentIntents } from '../../db/schema/payment-intents.ts';
import { createApiWorld, subscriptionBody } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';
import { intentBody } from './payment-fixtures.ts';

let world: ApiWorld;
let customerId: string;
const made: Record<string, string> = {};

const post = async (path: string, body: object) =>
  (await world.call('POST', path, { body })).json as Record<string, string>;

const listed = async (path: string, id: string) => {
  const answer = await world.call('GET', path);
  expect(answer.status).toBe(200);
  return (answer.json as { data: Record<string, string>[] }).data.map((record) => record[id]);
};

beforeAll(async () => {
  world = await createApiWorld();
  const ada = { customerDetails: { name: 'Ada', email: 'Ada@Example.com' } };
  const bob = { customerDetails: { name: 'Bob', email: 'bob@example.com' } };
  ({ customerId } = (await post('/customer/create', ada)) as { customerId: string });
  made['bob'] = (await post('/customer/create', bob))['customerId']!;
  const create = async (name: string, path: string, id: string, body: object) => {
    made[name] = (await post(path, body))[id]!;
  };
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
  await subscribe('first', { ...ada, customerId, receiptId: 'order-1' });
  await subscribe('second', { ...bob, receiptId: 'order-2' });
  await pay('open', { ...ada, customerId, receiptId: 'order-3' });
  await pay('expired', { ...bob, receiptId: 'order-4' });
  await world.db
    .update(paymentIntents)
    .set({ checkoutExpiresAt: 1_000 })
    .where(eq(paymentIntents.id, made['expired']!));
});

afterAll(() => world.close());

test('a list of subscriptions has only those that match every filter [D-§7]', async () => {
  const ids = (query: string) => listed(`/subscription?${query}`, 'subscriptionId');
  expect(await ids('email=ADA@example.com')).toEqual([made['first']]);
  expect(await ids(`customerId=${customerId}`)).toEqual([made['first']]);
  expect(await ids('receiptId=order-2')).toEqual([made['second']]);
  expect(await ids('status=CREATED')).toEqual([made['second'], made['first']]);
  expect(await ids('status=ACTIVE')).toEqual([]);
  expect(await ids(`customerId=${customerId}&receiptId=order-2`)).toEqual([]);
});

test('a list of payments has only those that match every filter [D-§7]', async () => {
  const ids = (query: string) => listed(`/payments?${query}`, 'xIntentId');
  expect(await ids('email=bob@example.com')).toEqual([made['expired']]);
  expect(await ids(`customerId=${customerId}`)).toEqual([made['open']]);
  expect(await ids('receiptId=order-4')).toEqual([made['expired']]);
  expect(await ids(`subscriptionId=${made['first']}`)).toEqual([]);
});

test('a list of payments filters by the status that a read shows [D-§7, D-41]', async () => {
  const ids = (status: string) => listed(`/payments?status=${status}`, 'xIntentId');
  const read = await world.call('GET', `/payments/get-intent/${made['expired']}`);
  expect(read.json).toMatchObject({ xIntentId: made['expired'], status: 'CANCELLED' });
  expect(await ids('CANCELLED')).toEqual([made['expired']]);
  expect(await ids('CREATED')).toEqual([made['open']]);
  expect(await ids('SUCCESS')).toEqual([]);
});

test('a list of customers has only those with the e-mail address [D-§7]', async () => {
  expect(await listed('/customer?email=BOB@EXAMPLE.COM', 'customerId')).toContain(made['bob']);
  expect(await listed('/customer?email=ada@example.com', 'customerId')).toContain(customerId);
  expect(await listed('/customer?email=nobody@example.com', 'customerId')).toEqual([]);
});

test.each(['/subscription', '/payments'])(
  '%s with an unknown status is refused [D-10]',
  async (path) => {
    const answer = await world.call('GET', `${path}?status=active`);
    expect(answer.status).toBe(400);
    expect(answer.json).toMatchObject({
      errorCode: 'bad_request',
      errorDescription: expect.stringMatching(/^status: must be one of CREATED, /) as string,
    });
  },
);

test('both paths of a read answer the same bytes [D-§7]', async () => {
  const texts = await Promise.all(
    ['v2/', ''].map((version) =>
      world.call('GET', `/payments/${version}get-intent/${made['open']}`),
    ),
  );
  expect(texts[0]?.status).toBe(200);
  expect(texts[0]?.text).toBe(texts[1]?.text);
});

test('a hosted payment without customerDetails is created with none [D-11]', async () => {
  const { customerDetails: _, ...body } = intentBody() as { customerDetails: object };
  const answer = await world.call('POST', '/payments/create-intent', { body });
  expect(answer.status).toBe(200);
  const { xIntentId } = answer.json as { xIntentId: string };
  const { json } = await world.call('GET', `/payments/v2/get-intent/${xIntentId}`);
  expect(json).toMatchObject({ customerDetails: {} });
});
