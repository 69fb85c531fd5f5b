import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { recordClockReached } from '../../db/repositories/subscriptions/transitions.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { createApiWorld, subscriptionBody } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld();
});
afterAll(() => world.close());

const JAN_31 = Date.UTC(2026, 0, 31, 12);
const FEB_1 = Date.UTC(2026, 1, 1);

async function createClock(now: number): Promise<string> {
  const answer = await world.call('POST', '/test-clock/create', { body: { now } });
  expect(answer.json).toEqual({ testClockId: expect.stringMatching(/^clk_[0-9A-Za-z]{22}$/), now });
  return (answer.json as { testClockId: string }).testClockId;
}

async function createOn(testClockId: string) {
  const answer = await world.call('POST', '/subscription/create', {
    body: subscriptionBody({ testClockId }),
  });
  expect(answer.status).toBe(200);
  return answer.json as { subscriptionId: string; createdAt: string };
}

const advance = (testClockId: string, to: number, key?: string) =>
  world.call('POST', '/test-clock/advance', {
    body: { testClockId, to },
    ...(key === undefined ? {} : { key }),
  });
const read = async (testClockId: string) =>
  (await world.call('GET', `/test-clock/${testClockId}`)).json;

test('a test clock starts at the given instant, or at the present [D-60]', async () => {
  await createClock(0);
  const before = Date.now();
  const answer = await world.call('POST', '/test-clock/create', { body: { now: null } });
  const { now } = answer.json as { now: number };
  expect(now).toBeGreaterThanOrEqual(before);
  expect(now).toBeLessThanOrEqual(Date.now());
});

test('a subscription on a test clock is created at the time of the clock [D-60]', async () => {
  const testClockId = await createClock(JAN_31);
  const { createdAt } = await createOn(testClockId);
  expect(createdAt).toBe('2026-01-31T12:00:00.000Z');
});

test('a test clock without subscriptions is READY at its target at once [D-60]', async () => {
  const testClockId = await createClock(JAN_31);
  const answer = await advance(testClockId, FEB_1);
  expect([answer.status, answer.json]).toEqual([200, { testClockId, now: FEB_1, status: 'READY' }]);
  expect(await read(testClockId)).toEqual({ testClockId, now: FEB_1, status: 'READY' });
});

test('an advance signals every subscription that is not ENDED, and then is READY [D-60]', async () => {
  const testClockId = await createClock(JAN_31);
  const first = await createOn(testClockId);
  const second = await createOn(testClockId);
  const ended = await createOn(testClockId);
  await world.call('POST', '/subscription/merchant/cancel', {
    body: { subscriptionId: ended.subscriptionId },
  });

  const answer = await advance(testClockId, FEB_1);

  expect(answer.json).toEqual({ testClockId, now: FEB_1, status: 'READY' });
  const signalled = world.workflows.calls
    .filter(({ name }) => name === `advanceClock ${FEB_1}`)
    .map(({ ref }) => (ref as { subscriptionId: string }).subscriptionId)
    .filter((id) => [first, second, ended].some(({ subscriptionId }) => subscriptionId === id));
  expect(signalled.toSorted()).toEqual([first.subscriptionId, second.subscriptionId].toSorted());
});

test('a test clock cannot go back [D-60]', async () => {
  const testClockId = await createClock(FEB_1);
  const answer = await advance(testClockId, JAN_31);
  expect(answer.status).toBe(400);
  expect(answer.json).toEqual({
    errorCode: 'bad_request',
    errorDescription: 'to: must not lie before 2026-02-01T00:00:00.000Z',
  });
});

test('a second advance is refused, and a repeat waits, while one runs [D-17, D-60]', async () => {
  const testClockId = await createClock(JAN_31);
  const { subscriptionId } = await createOn(testClockId);
  const ref = { merchantId: world.merchant.merchantId, subscriptionId };
  world.workflows.faults.isDown = true;
  const running = advance(testClockId, FEB_1, 'slow-advance');
  await expect
    .poll(() => read(testClockId))
    .toEqual({ testClockId, now: FEB_1, status: 'ADVANCING' });

  const other = await advance(testClockId, FEB_1 + 1);
  expect(other.status).toBe(400);
  expect(other.json).toEqual({
    errorCode: 'operation_not_allowed',
    errorDescription: 'The test clock is still advancing.',
  });

  world.workflows.faults.isDown = false;
  // Records what a sweep would cause: the subscription reaches the target.
  await recordClockReached(world.db, ref, FEB_1);
  expect((await running).json).toEqual({ testClockId, now: FEB_1, status: 'READY' });
  const repeated = await advance(testClockId, FEB_1, 'slow-advance');
  expect(repeated.json).toEqual({ testClockId, now: FEB_1, status: 'READY' });
  expect(repeated.headers['idempotent-replayed']).toBe('true');
});

test('an advance answers ADVANCING at its time limit, and its key READY later [D-17, D-60]', async () => {
  const testClockId = await createClock(JAN_31);
  const { subscriptionId } = await createOn(testClockId);
  world.workflows.faults.isDown = true;
  const late = await advance(testClockId, FEB_1, 'late-advance');
  world.workflows.faults.isDown = false;
  const repeated = await advance(testClockId, FEB_1, 'late-advance');

  expect([late.status, late.json]).toEqual([200, { testClockId, now: FEB_1, status: 'ADVANCING' }]);
  expect([repeated.status, repeated.json]).toEqual([
    200,
    { testClockId, now: FEB_1, status: 'READY' },
  ]);
  expect(repeated.headers['idempotent-replayed']).toBeUndefined();
  const [row] = await world.db
    .select({ reachedAt: subscriptions.clockReachedAt })
    .from(subscriptions)
    .where(eq(subscriptions.id, subscriptionId));
  expect(row).toEqual({ reachedAt: FEB_1 });
});
