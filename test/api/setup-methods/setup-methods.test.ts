import { expect } from 'vitest';
import { eq } from 'drizzle-orm';
import { setupMethods } from '../../../db/schema/checkouts.ts';
import { sessionOf } from '../../support/hosted-pages/checkouts.ts';
import { PUBLIC_URL, test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { makeCustomer, outcome, setupBody } from '../../support/fixtures/payments.ts';

/** Tests POST /setup-method/create and GET /setup-method/{id}. */

const create = (api: ApiEnvironment, changes: object = {}) =>
  api.call('POST', '/setup-method/create', { body: setupBody(changes) });
const read = (api: ApiEnvironment, id: string) => api.call('GET', `/setup-method/${id}`);

interface Made {
  setupMethodId: string;
  fwdUrl: string;
}

/** Saves a card as the page does when the payer returns from the card form. */
async function save(api: ApiEnvironment, setupMethodId: string, card: string): Promise<void> {
  const { merchantId } = api.merchant;
  const session = await sessionOf(api, setupMethodId, 'setupMethodId');
  await api.orders.execute('setupMethod', {
    merchantId,
    setupMethodId,
    token: { paymentToken: `${card}-${setupMethodId}`, checkoutSessionId: session.id },
  });
}

test('a setup session is created with the URL of its page [IF-4.13, IF-2.5]', async ({ api }) => {
  const answer = await create(api);
  const { setupMethodId, fwdUrl, ...rest } = answer.json as Made;
  expect([answer.status, rest]).toEqual([200, {}]);
  expect(setupMethodId).toMatch(/^sm_[0-9A-Za-z]{22}$/);
  expect(fwdUrl.startsWith(`${PUBLIC_URL}/setup/`)).toBe(true);
  expect(fwdUrl.slice(`${PUBLIC_URL}/setup/`.length)).toMatch(/^[0-9A-Za-z]{22}$/);

  const session = await read(api, setupMethodId);
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
  expect((await api.call('GET', `/customer/${customerId}`)).json).toEqual({
    customerId,
    customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
  });
});

test('a setup session stores the given fields, and a read returns all of them but phoneNumberRequired and billingDetails [IF-4.13, D-14, D-43]', async ({
  api,
}) => {
  const customerId = await makeCustomer(api);
  const given = {
    currency: 'eur',
    customerId,
    paymentMethods: ['GOOGLE_PAY', 'CARD', 'GOOGLE_PAY'],
    storeFrontId: 'sf_shop',
    metadata: { z: '1', a: '2' },
    phoneNumberRequired: true,
    billingDetails: { customerAddress: { country: 'DE', postalCode: '10115' } },
  };
  const made = (await create(api, given)).json as Made;
  expect(made).toMatchObject({ unavailablePaymentMethods: ['GOOGLE_PAY'] });
  const { setupMethodId } = made;
  expect((await read(api, setupMethodId)).text).toBe(
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
  const [row] = await api.db.select().from(setupMethods).where(eq(setupMethods.id, setupMethodId));
  expect(row).toMatchObject({
    phoneNumberRequired: true,
    billingDetails: { customerAddress: { country: 'DE', postalCode: '10115' } },
  });
});

test('a setup session is SUCCESS with the customer’s method when a card is saved [D-§7]', async ({
  api,
}) => {
  const { setupMethodId } = (await create(api)).json as Made;
  await save(api, setupMethodId, 'tok-good');
  const { status, pmId, customerId } = (await read(api, setupMethodId)).json as Record<
    string,
    string
  >;
  expect(status).toBe('SUCCESS');
  const tokens = await api.call('GET', `/customer/${customerId}/payment-method-tokens`);
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
      metadata: {},
    },
  ]);
  const charged = await api.call('POST', '/payments/charge-tokenised-pm', {
    body: { pmId, customerId, currency: 'USD', amount: 500 },
  });
  expect(charged.json).toMatchObject({ status: 'SUCCESS' });
});
