import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { idempotencyKeys } from '../../db/schema/idempotency-keys.ts';
import { createApiWorld } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';
import { declineNext, subscriptionIn, readSubscription } from './subscription-fixtures.ts';
import type { CreatedSubscription } from './subscription-fixtures.ts';

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld();
});
afterAll(() => world.close());

const NOON = Date.UTC(2027, 0, 31, 12);
const FOUR_PM = '2027-01-31T16:00:00.000Z';

/** An UNPAID subscription on a test clock at noon of 31 January 2027. */
async function unpaidAtNoon(changes: Record<string, unknown> = {}): Promise<CreatedSubscription> {
  const clock = await world.call('POST', '/test-clock/create', { body: { now: NOON } });
  const { testClockId } = clock.json as { testClockId: string };
  return subscriptionIn(world, 'UNPAID', { testClockId, ...changes });
}

async function retry(
  { subscriptionId }: CreatedSubscription,
  options: { card?: string; key?: string } = {},
) {
  const { card = null, key } = options;
  world.workflows.faults.card = card;
  const body = { subscriptionId };
  return world
    .call('POST', '/subscription/manual-retry', { body, ...(key === undefined ? {} : { key }) })
    .finally(() => {
      world.workflows.faults.card = null;
    });
}

test('a paid manual retry answers exactly five fields [IF-4.9, D-31, D-10a]', async () => {
  const subscription = await unpaidAtNoon();
  const answer = await retry(subscription);
  expect([answer.status, answer.text]).toEqual([
    200,
    `{"success":true,"minManualRetryDate":"${FOUR_PM}","status":"ACTIVE","errorCode":null,"errorMessage":null}`,
  ]);
  expect(await readSubscription(world, subscription)).toMatchObject({
    status: 'ACTIVE',
    remainingCycleCount: 10,
  });
});

test('a declined manual retry answers 200 with the code and its text [IF-4.9, D-42]', async () => {
  const subscription = await unpaidAtNoon();
  const answer = await retry(subscription, { card: 'insufficient_funds' });
  expect([answer.status, answer.json]).toEqual([
    200,
    {
      success: false,
      minManualRetryDate: FOUR_PM,
      status: 'UNPAID',
      errorCode: 'insufficient_funds',
      errorMessage: 'The account does not hold enough money for this payment.',
    },
  ]);
  expect(await readSubscription(world, subscription)).toMatchObject({
    status: 'UNPAID',
    remainingCycleCount: 11,
  });
});

test('a declined manual retry is stored under its key and replayed [IF-4.9, D-17]', async () => {
  const subscription = await unpaidAtNoon();
  const first = await retry(subscription, { card: 'stolen_card', key: 'declined' });
  const second = await retry(subscription, { key: 'declined' });
  expect(first.json).toMatchObject({ success: false, errorCode: 'stolen_card' });
  expect([second.status, second.text]).toEqual([200, first.text]);
  expect(second.headers['idempotent-replayed']).toBe('true');
});

test('a manual retry is refused until 4 h after the last one [IF-4.9, D-31]', async () => {
  const subscription = await unpaidAtNoon();
  await retry(subscription, { card: 'card_declined' });
  const again = await retry(subscription);
  expect([again.status, again.json]).toEqual([
    400,
    {
      errorCode: 'bad_request',
      errorDescription: `Another manual retry is possible from ${FOUR_PM}.`,
    },
  ]);
});

test('the cooldown of a manual retry also applies to the next declined cycle [D-31]', async () => {
  const subscription = await unpaidAtNoon();
  expect((await retry(subscription)).json).toMatchObject({ success: true });
  await declineNext(world, subscription, 'card_declined');
  expect((await retry(subscription)).json).toEqual({
    errorCode: 'bad_request',
    errorDescription: `Another manual retry is possible from ${FOUR_PM}.`,
  });
});

test('a manual retry that pays the last cycle answers ENDED [IF-4.9, D-31, D-10a]', async () => {
  const subscription = await unpaidAtNoon({ cycleCount: 2 });
  const answer = await retry(subscription);
  expect([answer.status, answer.json]).toEqual([
    200,
    {
      success: true,
      minManualRetryDate: null,
      status: 'ENDED',
      errorCode: null,
      errorMessage: null,
    },
  ]);
  expect(await readSubscription(world, subscription)).toMatchObject({
    status: 'ENDED',
    endReason: 'completed',
  });
});

test('a retry of unknown outcome is pending until its key returns the result [D-31, D-17]', async () => {
  const subscription = await unpaidAtNoon();
  const pending = {
    errorCode: 'payment_outcome_pending',
    errorDescription: 'The outcome of a payment is not known yet. Try again shortly.',
  };
  const first = await retry(subscription, { card: 'unknown', key: 'undecided' });
  expect([first.status, first.json]).toEqual([400, pending]);
  const again = await retry(subscription, { key: 'undecided' });
  expect([again.status, again.json]).toEqual([400, pending]);
  expect(again.headers['idempotent-replayed']).toBeUndefined();
  const [row] = await world.db
    .select({ body: idempotencyKeys.body })
    .from(idempotencyKeys)
    .where(eq(idempotencyKeys.key, 'undecided'));
  expect(row?.body).toBeNull();
  // Another key gets no second retry either.
  const other = await retry(subscription, { key: 'another' });
  expect([other.status, other.json]).toEqual([
    400,
    {
      errorCode: 'payment_outcome_pending',
      errorDescription: 'The outcome of a payment is not known yet.',
    },
  ]);

  world.workflows.faults.card = 'paid late';
  await world.workflows.lookUp(subscription.ref);
  const late = await retry(subscription, { key: 'undecided' });
  expect([late.status, late.json]).toEqual([
    200,
    {
      success: true,
      minManualRetryDate: FOUR_PM,
      status: 'ACTIVE',
      errorCode: null,
      errorMessage: null,
    },
  ]);
  const replayed = await retry(subscription, { key: 'undecided' });
  expect([replayed.text, replayed.headers['idempotent-replayed']]).toEqual([late.text, 'true']);
});
