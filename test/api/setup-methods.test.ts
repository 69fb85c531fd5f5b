import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { eq } from 'drizzle-orm';
import { checkoutSessions } from '../../db/schema/checkout-sessions.ts';
import { setupMethods } from '../../db/schema/setup-methods.ts';
import { createApiWorld, PUBLIC_URL } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';
import {
  makeCustomer,
  UNKNOWN_IDS,
  notFoundAnswer,
  outcome,
  setupBody,
} from './payment-fixtures.ts';
import { comparable } from './subscription-fixtures.ts';

/** POST /setup-method/create and GET /setup-method/{id}. */

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld();
});
afterEach(() => {
  world.clock.aheadMs = 0;
});
afterAll(() => world.close());

const create = (changes: object = {}) =>
  world.call('POST', '/setup-method/create', { body: setupBody(changes) });
const read = (id: string) => world.call('GET', `/setup-method/${id}`);

interface Made {
  setupMethodId: string;
  fwdUrl: string;
}

/** Saves a card as the page does when the payer returns from the card form. */
async function save(setupMethodId: string, card: string): Promise<void> {
  const { merchantId } = world.merchant;
  const [session] = await world.db
    .select({ id: checkoutSessions.id })
    .from(checkoutSessions)
    .where(eq(checkoutSessions.setupMethodId, setupMethodId));
  await world.payments.saveMethod({
    merchantId,
    setupMethodId,
    paymentToken: `${card}-${setupMethodId}`,
    checkoutSessionId: session!.id,
  });
}

test('a setup session is created with the URL of its page [IF-4.13, IF-2.5]', async () => {
  const answer = await create();
  const { setupMethodId, fwdUrl, ...rest } = answer.json as Made;
  expect([answer.status, rest]).toEqual([200, {}]);
  expect(setupMethodId).toMatch(/^sm_[0-9A-Za-z]{22}$/);
  expect(fwdUrl.startsWith(`${PUBLIC_URL}/setup/`)).toBe(true);
  expect(fwdUrl.slice(`${PUBLIC_URL}/setup/`.length)).toMatch(/^[0-9A-Za-z]{22}$/);

  const session = await read(setupMethodId);
  const { customerId } = session.json as { customerId: string };
  expect(customerId).toMatch(/^cus_[0-9A-Za-z]{22}$/);
  expect(outcome(session)).toEqual([
    200,
    {
      setupMethodId,
      customerId,
      currency: 'USD',
      paymentMethods: ['CARD'],
      callbackUrl: 'https://merchant.example/saved',
      status: 'CREATED',
    },
  ]);
  expect((await world.call('GET', `/customer/${customerId}`)).json).toEqual({
    customerId,
    customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
  });
});

test('a setup session reads with every given field [IF-4.13, D-14, D-43]', async () => {
  const customerId = await makeCustomer(world);
  const given = {
    currency: 'eur',
    customerId,
    paymentMethods: ['GOOGLE_PAY', 'CARD', 'GOOGLE_PAY'],
    storeFrontId: 'sf_shop',
    metadata: { z: '1', a: '2' },
    phoneNumberRequired: true,
    billingDetails: { customerAddress: { country: 'DE', postalCode: '10115' } },
  };
  const made = (await create(given)).json as Made;
  expect(made).toMatchObject({ unavailablePaymentMethods: ['GOOGLE_PAY'] });
  const { setupMethodId } = made;
  expect((await read(setupMethodId)).text).toBe(
    JSON.stringify({
      setupMethodId,
      customerId,
      currency: 'EUR',
      paymentMethods: ['CARD'],
      storeFrontId: 'sf_shop',
      callbackUrl: 'https://merchant.example/saved',
      metadata: { z: '1', a: '2' },
      status: 'CREATED',
    }),
  );
  const [row] = await world.db
    .select()
    .from(setupMethods)
    .where(eq(setupMethods.id, setupMethodId));
  expect(row).toMatchObject({
    phoneNumberRequired: true,
    billingDetails: { customerAddress: { country: 'DE', postalCode: '10115' } },
  });
});

test('a setup session answers a foreign customer exactly as an unknown one [D-11, D-21]', async () => {
  const foreign = await create({ customerId: await makeCustomer(world, 'other') });
  const unknown = await create({ customerId: UNKNOWN_IDS.customer });
  expect(comparable(foreign)).toEqual(comparable(unknown));
  expect(outcome(foreign)).toEqual(notFoundAnswer('customer'));
});

test('a setup session is SUCCESS with the customer’s method when a card is saved [D-§7]', async () => {
  const { setupMethodId } = (await create()).json as Made;
  await save(setupMethodId, 'tok-good');
  const { status, pmId, customerId } = (await read(setupMethodId)).json as Record<string, string>;
  expect(status).toBe('SUCCESS');
  const tokens = await world.call('GET', `/customer/${customerId}/payment-method-tokens`);
  expect(outcome(tokens)).toEqual([
    200,
    {
      data: [
        {
          paymentMethodId: pmId,
          paymentMethod: 'CARD',
          cardMetadata: {
            brand: 'visa',
            country: 'US',
            lastFourDigit: '4242',
            expiryMonth: 12,
            expiryYear: 2034,
          },
          customerId,
          status: 'LIVE',
          createdAt: expect.any(Number) as number,
        },
      ],
    },
  ]);
  const charged = await world.call('POST', '/payments/charge-tokenised-pm', {
    body: { pmId, customerId, currency: 'USD', amount: 500 },
  });
  expect(charged.json).toMatchObject({ status: 'SUCCESS' });
});

test('a setup session stays CREATED without a method when the card is refused [D-§7]', async () => {
  const { setupMethodId } = (await create()).json as Made;
  await save(setupMethodId, 'tok-card_declined');
  const session = (await read(setupMethodId)).json as Record<string, string>;
  expect(session['status']).toBe('CREATED');
  expect(session).not.toHaveProperty('pmId');
  const tokens = await world.call(
    'GET',
    `/customer/${session['customerId']}/payment-method-tokens`,
  );
  expect(tokens.json).toEqual({ data: [] });
});

test('a setup session is CANCELLED after 24 hours without a card [D-§7]', async () => {
  const { setupMethodId } = (await create()).json as Made;
  world.clock.aheadMs = 24 * 3_600_000 + 60_000;
  expect((await read(setupMethodId)).json).toMatchObject({ status: 'CANCELLED' });
});

test('a read answers a foreign setup session exactly as an unknown one [D-21]', async () => {
  const theirs = await world.call('POST', '/setup-method/create', {
    body: setupBody(),
    as: world.other,
  });
  const foreign = await read((theirs.json as Made).setupMethodId);
  expect(comparable(foreign)).toEqual(comparable(await read(UNKNOWN_IDS.setup)));
  expect(outcome(foreign)).toEqual(notFoundAnswer('setup method'));
});
