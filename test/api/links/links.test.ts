import { expect } from 'vitest';
import { changeSettings } from '../../../db/repositories/merchants/settings.ts';
import type { PaymentMethodKind } from '../../../domain/payment-method.ts';
import { subscriptionBody, test } from '../../support/api-environment.ts';
import type { ApiEnvironment, CallOptions } from '../../support/api-environment.ts';
import { LINK_FIELDS, pathOf, rowOf } from '../../support/hosted-pages/links.ts';

/** The endpoint that creates a shareable link. Each use of the link creates a subscription. */
const PATH = '/subscription/link/merchant/generate-link';
const NEXT_YEAR = Date.now() + 365 * 86_400_000;

const linkBody = (changes: Record<string, unknown> = {}) =>
  subscriptionBody({ callbackUrl: undefined, expiryDate: NEXT_YEAR, ...changes });
const generate = (
  api: ApiEnvironment,
  changes: Record<string, unknown> = {},
  options: CallOptions = {},
) => api.call('POST', PATH, { body: linkBody(changes), ...options });

test('a link has a random code of twelve characters and one use by default [IF-4.4, D-37, IF-1]', async ({
  api,
}) => {
  const [first, second] = [await generate(api), await generate(api)];
  expect(first.status).toBe(200);
  expect(first.json).toEqual({
    shortUrl: expect.stringMatching(/^https:\/\/pay\.example\/l\/[0-9A-Za-z]{12}$/) as string,
    disclaimer: expect.any(String) as string,
  });
  expect(first.text).not.toBe(second.text);
  expect(await rowOf(api, pathOf(first))).toMatchObject({
    merchantId: api.merchant.merchantId,
    multiUseLimit: 1,
    uses: 0,
    callbackUrl: null,
    expiresAt: NEXT_YEAR,
  });
});

test('a link stores the fields of its request [IF-4.4]', async ({ api }) => {
  const made = await generate(api, {
    ...LINK_FIELDS,
    currency: 'usd',
    trialPeriodCount: 7,
    trialPeriodInterval: 'DAY',
    productPage: { name: 'Tea club', description: 'A box every month' },
    multiUseLimit: 9_007_199_254_740_991,
  });
  expect(await rowOf(api, pathOf(made))).toMatchObject({
    terms: {
      amountMinor: 1_999,
      currency: 'USD',
      interval: 'MONTH',
      intervalCount: 1,
      cycleCount: 12,
      upfrontAmountMinor: null,
      trial: { interval: 'DAY', count: 7 },
    },
    ...LINK_FIELDS,
    customerId: null,
    productPage: { name: 'Tea club', description: 'A box every month' },
    multiUseLimit: 9_007_199_254_740_991,
  });
});

test('a link request treats null as absent and ignores unknown fields [D-10, D-10a, D-14]', async ({
  api,
}) => {
  const made = await generate(api, {
    metadata: null,
    callbackUrl: null,
    multiUseLimit: null,
    testClockId: 'clk_of_no_link',
    paymentMethods: 'ignored',
  });
  expect(made.status).toBe(200);
  expect(await rowOf(api, pathOf(made))).toMatchObject({ multiUseLimit: 1, callbackUrl: null });
});

test.for<[string, PaymentMethodKind[] | null, string, string]>([
  ['no setting', null, 'EUR', ''],
  [
    'every payment method',
    ['CARD', 'GOOGLE_PAY', 'APPLE_PAY'],
    'EUR',
    'GOOGLE_PAY with EUR and APPLE_PAY with EUR are not available; the checkout falls back to CARD.',
  ],
  [
    'cards and one wallet',
    ['CARD', 'APPLE_PAY'],
    'JPY',
    'APPLE_PAY with JPY is not available; the checkout falls back to CARD.',
  ],
  ['cards only', ['CARD'], 'EUR', ''],
])(
  'the disclaimer for a merchant with %s names each unavailable payment method and currency [IF-2.7, D-37, D-43, IF-2.10]',
  async ([, paymentMethods, currency, disclaimer], { api }) => {
    const { merchantId } = api.other;
    if (paymentMethods) await changeSettings(api.db, merchantId, { paymentMethods });
    const made = await generate(api, { currency, amount: 5_000 }, { as: api.other });
    expect(made.json).toMatchObject({ disclaimer });
  },
);

test('a repeated idempotency key returns the same link also after the link’s expiry date [D-17]', async ({
  api,
}) => {
  const expiryDate = Date.now() + 60_000;
  const first = await generate(api, { expiryDate }, { key: 'link-expired' });
  expect(first.status).toBe(200);
  api.clock.aheadMs = 61_000;
  const again = await generate(api, { expiryDate }, { key: 'link-expired' });
  expect([again.status, again.text]).toEqual([200, first.text]);
  const other = await generate(api, { expiryDate }, { key: 'link-too-late' });
  expect(other.json).toMatchObject({
    errorCode: 'bad_request',
    errorDescription: 'expiryDate: must lie in the future',
  });
  // A malformed request stores no key.
  const corrected = await generate(api, {}, { key: 'link-too-late' });
  expect(corrected.status).toBe(200);
});
