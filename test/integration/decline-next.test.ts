import { expect } from 'vitest';
import { onDevServer as test } from '../support/environment.ts';
import { payOnPage } from '../../tools/scripts/client/payer.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';

test('a renewal is declined with the code that the merchant asked for [D-61]', async ({ shop }) => {
  const now = Date.parse('2027-01-10T12:00:00Z');
  const { testClockId } = await shop.merchant.post<{ testClockId: string }>('/test-clock/create', {
    now,
  });
  const { subscriptionId, fwdUrl } = await shop.merchant.post<{
    subscriptionId: string;
    fwdUrl: string;
  }>('/subscription/create', { ...MONTHLY, testClockId });
  await payOnPage(fwdUrl);
  const decline = { subscriptionId, code: 'insufficient_funds' };
  await shop.merchant.post('/test-helpers/decline-next', decline);
  await shop.merchant.post('/test-clock/advance', {
    testClockId,
    to: Date.parse('2027-02-10T12:00:00Z'),
  });
  const { data } = await shop.merchant.get<{ data: { chargeAttempts: object[] }[] }>(
    `/payments?subscriptionId=${subscriptionId}`,
  );
  expect(data.map(({ chargeAttempts }) => chargeAttempts)).toMatchObject([
    [{ status: 'FAILED', errorCode: 'insufficient_funds' }],
    [{ status: 'SUCCESS' }],
  ]);
});
