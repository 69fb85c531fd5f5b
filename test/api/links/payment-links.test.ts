import { expect } from 'vitest';
import { changeSettings } from '../../../db/repositories/merchants/settings.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment, CallOptions } from '../../support/api-environment.ts';
import {
  LINK_FIELDS,
  pathOf,
  paymentLinkBody,
  PAYMENT_LINK,
  rowOf,
} from '../../support/hosted-pages/links.ts';

/** POST /link/merchant/generate-link creates a shareable link. Each use of the link creates a hosted payment. */

const IN_A_DAY = Date.now() + 86_400_000;

const generate = (api: ApiEnvironment, changes: object = {}, options: CallOptions = {}) =>
  api.call('POST', PAYMENT_LINK, {
    body: paymentLinkBody({ expiryDate: IN_A_DAY, ...changes }),
    ...options,
  });

test('the answer to a payment link request is a short URL and a disclaimer, and only the link’s row is stored [D-§7, D-37]', async ({
  api,
}) => {
  const before = await api.countRows();
  const answer = await generate(api);
  expect([answer.status, answer.json]).toEqual([
    200,
    {
      shortUrl: expect.stringMatching(/^https:\/\/pay\.example\/l\/[0-9A-Za-z]{12}$/) as string,
      disclaimer: '',
    },
  ]);
  const after = await api.countRows();
  expect(after).toEqual({ ...before, subscription_link: before['subscription_link']! + 1 });
});

test('a payment link stores the fields of its request, but of the payment methods only the available ones [D-§7]', async ({
  api,
}) => {
  const made = await generate(api, {
    ...LINK_FIELDS,
    currency: 'usd',
    comments: 'Spring offer',
    metadata: { order: '7', b: '', a: 'x' },
    paymentMethods: ['APPLE_PAY', 'CARD', 'BANK_TRANSFER'],
    storeFrontId: 'sf_shop',
    tokenise: true,
    multiUseLimit: 1_000_000,
  });
  expect(made.json).toMatchObject({
    disclaimer:
      'APPLE_PAY with USD and BANK_TRANSFER with USD are not available; the checkout falls back to CARD.',
  });
  expect(await rowOf(api, pathOf(made))).toMatchObject({
    merchantId: api.merchant.merchantId,
    terms: null,
    payment: {
      amountMinor: 2_500,
      currency: 'USD',
      comments: 'Spring offer',
      metadata: { order: '7', b: '', a: 'x' },
      paymentMethods: ['CARD'],
      storeFrontId: 'sf_shop',
      tokenise: true,
    },
    ...LINK_FIELDS,
    customerId: null,
    multiUseLimit: 1_000_000,
    uses: 0,
    expiresAt: IN_A_DAY,
  });
});

test('the disclaimer of a payment link is empty when the request names no methods and the merchant has only CARD [D-43, D-§7]', async ({
  api,
}) => {
  await changeSettings(api.db, api.other.merchantId, { paymentMethods: ['CARD'] });
  const made = await generate(api, {}, { as: api.other });
  expect(made.json).toMatchObject({ disclaimer: '' });
});
