import { expect } from 'vitest';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { saveCard, tokenisedBody } from '../../support/fixtures/payments.ts';

const DAY_MS = 86_400_000;

async function charge(api: ApiEnvironment, key: string, amount: number, body: object) {
  const answer = await api.call('POST', '/payments/charge-tokenised-pm', {
    body: { ...body, amount },
    key,
  });
  return {
    ...(answer.json as { intentId: string; status: string; errorCode?: string }),
    isReplayed: answer.headers['idempotent-replayed'] === 'true',
  };
}

test('the answer of a declined charge is kept under its idempotency key for 24 h; after that a call with the key charges anew [D-17]', async ({
  api,
}) => {
  const body = tokenisedBody(await saveCard(api));
  api.orders.faults.card = 'insufficient_funds';
  const declined = await charge(api, 'cycle-7', 2_500, body);
  expect(declined).toMatchObject({ status: 'FAILED', errorCode: 'insufficient_funds' });
  api.orders.faults.card = null;

  api.clock.aheadMs = DAY_MS - 60_000;
  expect(await charge(api, 'cycle-7', 2_500, body)).toEqual({ ...declined, isReplayed: true });

  api.clock.aheadMs = DAY_MS + 60_000;
  const paid = await charge(api, 'cycle-7', 2_600, body);
  expect(paid).toMatchObject({ status: 'SUCCESS', isReplayed: false });
  expect(paid.intentId).not.toBe(declined.intentId);

  api.clock.aheadMs = 44 * DAY_MS;
  expect(await charge(api, 'cycle-7', 2_600, body)).toEqual({ ...paid, isReplayed: true });
});
