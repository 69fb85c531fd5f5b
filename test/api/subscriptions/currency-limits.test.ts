import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect } from 'vitest';
import { idempotencyKeys } from '../../../db/schema/merchants.ts';
import { useCurrencies } from '../../../api/fields.ts';
import { CURRENCIES, withOverrides } from '../../../domain/currencies.ts';
import { expectError } from '../../support/answers.ts';
import { subscriptionBody, test } from '../../support/api-environment.ts';
import type { Answer } from '../../support/api-environment.ts';
import { readSubscription, subscriptionIn } from '../../support/fixtures/subscriptions.ts';

/**
 * The limits of an operator's file (CURRENCY_LIMITS_FILE): a higher minimum and a lower maximum of EUR, a lower
 * minimum of USD, and JPY inactive.
 */
const useFile = () =>
  useCurrencies(
    withOverrides(CURRENCIES, {
      EUR: { minimum: 500, maximum: 9_000 },
      USD: { minimum: 21 },
      JPY: { active: false },
    }),
  );
beforeAll(useFile);
afterAll(() => useCurrencies(CURRENCIES));

const refused = (answer: Answer, description: string) =>
  expectError(answer, 400, 'bad_request', description);

test('limits of the operator’s file replace the built-in limits for new subscriptions and charges [D-03]', async ({
  api,
}) => {
  const create = (changes: object) =>
    api.call('POST', '/subscription/create', { body: subscriptionBody({ ...changes }) });
  refused(await create({ amount: 499, currency: 'EUR' }), 'amount: must be at least 500 in EUR');
  refused(await create({ amount: 9_001, currency: 'EUR' }), 'amount: must be at most 9000 in EUR');
  refused(
    await create({ amount: 5_000, currency: 'JPY' }),
    'currency: must be a supported ISO 4217 currency code',
  );
  expect((await create({ amount: 500, currency: 'EUR' })).status).toBe(200);
  expect((await create({ amount: 21, currency: 'USD' })).status).toBe(200);

  // The minimum of a charge outside the cycles is half of the minimum of a cycle.
  const { subscriptionId } = await subscriptionIn(api, 'ACTIVE');
  const charge = (amount: number) =>
    api.call('POST', '/subscription/merchant/one-time-charge', {
      body: { subscriptionId, amount, currency: 'USD' },
      key: `limits-${amount}`,
    });
  refused(await charge(9), 'amount: must be at least 10 in USD');
  expect((await charge(10)).status).toBe(200);
});

test('limits of the operator’s file replace the built-in limits for an edited amount [D-03, IF-8]', async ({
  api,
}) => {
  const subscription = await subscriptionIn(api, 'ACTIVE');
  const edit = (newAmount: number) =>
    api.call('POST', '/subscription/edit', {
      body: { subscriptionId: subscription.subscriptionId, newAmount },
    });
  refused(await edit(20), 'newAmount must be at least 21 in USD');
  expect((await edit(21)).status).toBe(200);
  expect(await readSubscription(api, subscription)).toMatchObject({ amount: 21 });
});

test('the OpenAPI document lists the limits of the operator’s file by currency code [D-03]', async ({
  api,
}) => {
  const { text } = await api.call('GET', '/openapi.json', { as: null });
  expect(text).toContain('| EUR | 2 | 500 | 250 | 9000 |');
  expect(text).toContain('| USD | 2 | 21 | 10 | 99999999 |');
  expect(text).not.toContain('| JPY |');
  const codes = [...text.matchAll(/\| ([A-Z]{3}) \| \d/g)].map(([, code]) => code);
  expect(codes.length).toBeGreaterThan(100);
  expect(codes).toEqual(codes.toSorted((a = '', b = '') => (a < b ? -1 : 1)));
});

/** A one-time charge under the built-in limits, and then its repeats under those of the file. */
const limited = test.extend('charge', async ({ api }) => {
  const { subscriptionId } = await subscriptionIn(api, 'ACTIVE');
  useCurrencies(CURRENCIES);
  return (amount: number, currency: string, key: string) =>
    api.call('POST', '/subscription/merchant/one-time-charge', {
      body: { subscriptionId, amount, currency },
      key,
    });
});

limited(
  'a repeat of a charge that the limits now refuse gets the answer of its first call [D-03, D-17]',
  async ({ api, charge }) => {
    const first = await charge(200, 'EUR', 'before-the-limits');
    expect(first).toMatchObject({ status: 200, json: { status: 'SUCCESS' } });
    const charged = api.orders.charges.length;
    useFile();
    expect((await charge(200, 'EUR', 'before-the-limits')).text).toBe(first.text);
    refused(await charge(200, 'EUR', 'after-the-limits'), 'amount: must be at least 250 in EUR');
    expect(await charge(201, 'EUR', 'before-the-limits')).toMatchObject({
      status: 422,
      json: { errorCode: 'idempotency_key_reused' },
    });
    await api.db
      .update(idempotencyKeys)
      .set({ state: 'IN_FLIGHT', lockedUntil: Date.now() + 45_000, httpStatus: null, body: null })
      .where(eq(idempotencyKeys.key, 'before-the-limits'));
    expect(await charge(200, 'EUR', 'before-the-limits')).toMatchObject({
      status: 409,
      json: { errorCode: 'idempotency_key_in_use' },
    });
    expect(api.orders.charges).toHaveLength(charged);
  },
);

limited(
  'a repeat of a charge without outcome goes on when the limits now refuse its amount or its currency [D-03, D-17]',
  async ({ api, charge }) => {
    for (const [amount, currency] of [
      [200, 'EUR'],
      [5_000, 'JPY'],
    ] as const) {
      useCurrencies(CURRENCIES);
      api.orders.faults.card = 'unknown';
      const first = await charge(amount, currency, `pending-${currency}`);
      expect(first).toMatchObject({ status: 200, json: { status: 'PENDING' } });
      useFile();
      api.orders.faults.card = 'paid';
      const second = await charge(amount, currency, `pending-${currency}`);
      const { intentId } = first.json as { intentId: string };
      expect(second).toMatchObject({ status: 200, json: { intentId, status: 'SUCCESS' } });
      expect((await charge(amount, currency, `pending-${currency}`)).text).toBe(second.text);
      expect(api.orders.charges.filter(({ key }) => key.includes(intentId))).toHaveLength(1);
    }
  },
);
