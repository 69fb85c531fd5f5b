import { expect } from 'vitest';
import { createMerchantWithCredential } from '../../../db/repositories/merchants/merchants.ts';
import { changeSettings } from '../../../db/repositories/merchants/settings.ts';
import { PUBLIC_URL, test } from '../../support/api-environment.ts';

test('a merchant reads the settings that the operator made, and no other merchant’s [D-65, D-63, D-21]', async ({
  api,
}) => {
  const { db, pepper } = api;
  const merchant = await createMerchantWithCredential(db, { name: 'Shop', mode: 'test', pepper });
  const settings = async (as: { keyId: string; secret: string }) =>
    (await api.call('GET', '/merchant/settings', { as })).json;
  const defaults = {
    retryPlan: ['4h', '8h', '12h', '1d'],
    afterExhausted: 'stay_unpaid',
    unpaidFrom: 'first_decline',
    jitter: 'auto',
    notices: [
      { eventType: 'subscription.renewal_upcoming', cycleDays: 180, daysBefore: [40, 10] },
      { eventType: 'subscription.trial_ending', cycleDays: 0, daysBefore: [8] },
      { eventType: 'subscription.amount_changing', cycleDays: 180, daysBefore: [20] },
      { eventType: 'payment_method.expiring', cycleDays: 180, daysBefore: [30] },
    ],
    chargeWithoutNotice: true,
    paymentMethods: ['CARD', 'GOOGLE_PAY', 'APPLE_PAY'],
    branding: {},
    declarations: 'tell',
    withdrawalDays: 14,
    portal: ['card'],
  };
  expect(await settings(merchant)).toMatchObject(defaults);
  await changeSettings(db, merchant.merchantId, {
    retryPlan: {
      delaysMs: [90 * 60_000],
      afterExhausted: 'end',
      unpaidFrom: 'retries_exhausted',
    },
    jitterMs: 1_800_000,
    notices: [],
    chargeWithoutNotice: false,
    paymentMethods: ['CARD'],
    cardLimits: { perDay: 3, per30Days: 12 },
    branding: { logoUrl: 'https://merchant.example/logo.png', colour: '#1f4fd8' },
    webhookRetention: { bodyDays: 90, attemptDays: 14 },
    declarations: 'execute',
    withdrawalDays: 30,
    portal: ['card', 'cancel'],
  });
  expect(await settings(merchant)).toEqual({
    retryPlan: ['90m'],
    afterExhausted: 'end',
    unpaidFrom: 'retries_exhausted',
    cardLimits: { perDay: 3, per30Days: 12 },
    jitter: '30m',
    notices: [],
    chargeWithoutNotice: false,
    paymentMethods: ['CARD'],
    branding: { logo: 'https://merchant.example/logo.png', colour: '#1f4fd8' },
    webhookRetention: { eventDays: 90, attemptDays: 14 },
    declarations: 'execute',
    withdrawalDays: 30,
    portal: ['card', 'cancel'],
    declarationPages: {
      cancellation: `${PUBLIC_URL}/m/${merchant.merchantId}/cancel`,
      withdrawal: `${PUBLIC_URL}/m/${merchant.merchantId}/withdraw`,
    },
    payerPage: `${PUBLIC_URL}/m/${merchant.merchantId}`,
    limits: {
      windowSeconds: expect.any(Number) as number,
      requests: expect.any(Number) as number,
      readsOfOneSubscription: expect.any(Number) as number,
    },
  });
  expect(await settings(api.other)).toMatchObject(defaults);
});
