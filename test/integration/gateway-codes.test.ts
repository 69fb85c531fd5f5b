import { expect } from 'vitest';
import { onDevServer as test } from '../support/environment.ts';
import { payOnPage } from '../../tools/scripts/client/payer.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';

const FORBIDDEN = {
  code: 'card_declined',
  gatewayCode: 'generic_decline',
  advice: { kind: 'never' },
  count: 100,
};

test('a declined renewal is not retried when the gateway forbids it, and its attempt shows the gateway’s code [D-30, D-42]', async ({
  env,
  shop: { merchant },
}) => {
  const now = Date.parse('2027-01-10T12:00:00Z');
  const { testClockId } = await merchant.post<{ testClockId: string }>('/test-clock/create', {
    now,
  });
  const { subscriptionId, fwdUrl } = await merchant.post<{
    subscriptionId: string;
    fwdUrl: string;
  }>('/subscription/create', { ...MONTHLY, testClockId });
  await payOnPage(fwdUrl);
  await env.control('POST', '/control/declines', { ...FORBIDDEN, subscriptionId });
  const to = Date.parse('2027-04-10T12:00:00Z');
  await merchant.post('/test-clock/advance', { testClockId, to });

  const { data } = await merchant.get<{ data: { chargeAttempts: object[] }[] }>(
    `/payments?subscriptionId=${subscriptionId}`,
  );
  expect(data.map(({ chargeAttempts }) => chargeAttempts)).toEqual([
    [
      {
        attempt: 1,
        status: 'FAILED',
        errorCode: 'card_declined',
        errorMessage: 'The card was declined.',
        gatewayCode: 'generic_decline',
        createdAt: '2027-02-10T12:00:00.000Z',
      },
    ],
    [{ attempt: 1, status: 'SUCCESS', createdAt: '2027-01-10T12:00:00.000Z' }],
  ]);
  expect(await merchant.get(`/subscription/get-subscription/${subscriptionId}`)).toMatchObject({
    status: 'UNPAID',
    nextPaymentDate: null,
  });
  expect(JSON.stringify(await merchant.get(`/subscription/timeline/${subscriptionId}`))).toContain(
    'cycle 2 declined (card_declined, at the gateway generic_decline)',
  );
});

test('a one-time charge shows the gateway’s code of its decline [D-35, D-42]', async ({
  env,
  shop: { merchant },
}) => {
  const { subscriptionId, fwdUrl } = await merchant.post<{
    subscriptionId: string;
    fwdUrl: string;
  }>('/subscription/create', MONTHLY);
  await payOnPage(fwdUrl);
  await env.control('POST', '/control/declines', { ...FORBIDDEN, subscriptionId, count: 1 });
  const body = { subscriptionId, amount: 500, currency: 'USD' };
  const charge = () =>
    merchant.post<{ intentId: string }>('/subscription/merchant/one-time-charge', body);
  const { intentId, ...answer } = await charge();
  expect(answer).toEqual({
    status: 'FAILED',
    errorCode: 'card_declined',
    errorMessage: 'The card was declined.',
  });
  const { chargeAttempts } = await merchant.get<{ chargeAttempts: object[] }>(
    `/payments/v2/get-intent/${intentId}`,
  );
  expect(chargeAttempts).toMatchObject([
    { attempt: 1, status: 'FAILED', gatewayCode: 'generic_decline' },
  ]);
  // The gateway's advice forbids only automatic retries.
  expect(await charge()).toMatchObject({ status: 'SUCCESS' });
});
