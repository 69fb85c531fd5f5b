import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createApiWorld } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';
import { saveCard, tokenisedBody } from './payment-fixtures.ts';

const DAY_MS = 86_400_000;

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld();
});
afterEach(() => {
  world.clock.aheadMs = 0;
  world.payments.faults.card = null;
});
afterAll(() => world.close());

async function charge(key: string, amount: number, body: object) {
  const answer = await world.call('POST', '/payments/charge-tokenised-pm', {
    body: { ...body, amount },
    key,
  });
  return {
    ...(answer.json as { intentId: string; status: string; errorCode?: string }),
    isReplayed: answer.headers['idempotent-replayed'] === 'true',
  };
}

test('the answer of a declined charge is kept under its key for 24 h, then the key charges anew [D-17]', async () => {
  const body = tokenisedBody(await saveCard(world));
  world.payments.faults.card = 'insufficient_funds';
  const declined = await charge('cycle-7', 2_500, body);
  expect(declined).toMatchObject({ status: 'FAILED', errorCode: 'insufficient_funds' });
  world.payments.faults.card = null;

  world.clock.aheadMs = DAY_MS - 60_000;
  expect(await charge('cycle-7', 2_500, body)).toEqual({ ...declined, isReplayed: true });

  world.clock.aheadMs = DAY_MS + 60_000;
  const paid = await charge('cycle-7', 2_600, body);
  expect(paid).toMatchObject({ status: 'SUCCESS', isReplayed: false });
  expect(paid.intentId).not.toBe(declined.intentId);

  world.clock.aheadMs = 44 * DAY_MS;
  expect(await charge('cycle-7', 2_600, body)).toEqual({ ...paid, isReplayed: true });
});
