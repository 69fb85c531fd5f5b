import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { recordClockReached } from '../../../db/repositories/subscriptions/row.ts';
import { subscriptions } from '../../../db/schema/subscriptions.ts';
import { subscriptionBody, test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { createClock } from '../../support/fixtures/test-clocks.ts';
import { expectError } from '../../support/answers.ts';
import { stateOf } from '../../support/subscriptions.ts';
import { eventually } from '../../support/eventually.ts';

const JAN_31 = Date.UTC(2026, 0, 31, 12);
const FEB_1 = Date.UTC(2026, 1, 1);

async function createOn(api: ApiEnvironment, testClockId: string) {
  const answer = await api.call('POST', '/subscription/create', {
    body: subscriptionBody({ testClockId }),
  });
  expect(answer.status).toBe(200);
  return answer.json as { subscriptionId: string; createdAt: string };
}

const advance = (api: ApiEnvironment, testClockId: string, to: number, key?: string) =>
  api.call('POST', '/test-clock/advance', {
    body: { testClockId, to },
    ...(key === undefined ? {} : { key }),
  });
const read = async (api: ApiEnvironment, testClockId: string) =>
  (await api.call('GET', `/test-clock/${testClockId}`)).json;

test('a test clock starts at the given instant, or at the present time [D-60]', async ({ api }) => {
  await createClock(api, 0);
  const before = Date.now();
  const answer = await api.call('POST', '/test-clock/create', { body: { now: null } });
  const { now } = answer.json as { now: number };
  expect(now).toBeGreaterThanOrEqual(before);
  expect(now).toBeLessThanOrEqual(Date.now());
});

test('a subscription on a test clock is created at the time of the clock [D-60]', async ({
  api,
}) => {
  const testClockId = await createClock(api, JAN_31);
  const { createdAt } = await createOn(api, testClockId);
  expect(createdAt).toBe('2026-01-31T12:00:00.000Z');
});

test('an advance of a test clock without subscriptions answers READY at once [D-60]', async ({
  api,
}) => {
  const testClockId = await createClock(api, JAN_31);
  const answer = await advance(api, testClockId, FEB_1);
  expect([answer.status, answer.json]).toEqual([200, { testClockId, now: FEB_1, status: 'READY' }]);
  expect(await read(api, testClockId)).toEqual({ testClockId, now: FEB_1, status: 'READY' });
});

test('an advance of a test clock is READY after it has signalled every subscription that is not ENDED [D-60]', async ({
  api,
}) => {
  const testClockId = await createClock(api, JAN_31);
  const first = await createOn(api, testClockId);
  const second = await createOn(api, testClockId);
  const ended = await createOn(api, testClockId);
  await api.call('POST', '/subscription/merchant/cancel', {
    body: { subscriptionId: ended.subscriptionId },
  });

  const answer = await advance(api, testClockId, FEB_1);

  expect(answer.json).toEqual({ testClockId, now: FEB_1, status: 'READY' });
  const signalled = api.workflows.calls
    .filter(({ name }) => name === `advanceClock ${FEB_1}`)
    .map(({ ref }) => (ref as { subscriptionId: string }).subscriptionId)
    .filter((id) => [first, second, ended].some(({ subscriptionId }) => subscriptionId === id));
  expect(signalled.toSorted()).toEqual([first.subscriptionId, second.subscriptionId].toSorted());
});

test('a test clock cannot go back [D-60]', async ({ api }) => {
  const testClockId = await createClock(api, FEB_1);
  const answer = await advance(api, testClockId, JAN_31);
  expectError(answer, 400, 'bad_request', 'to: must not lie before 2026-02-01T00:00:00.000Z');
});

test('an advance of a test clock is refused while another advance runs; a later repeat of that advance gets the stored answer [D-17, D-60]', async ({
  api,
}) => {
  const testClockId = await createClock(api, JAN_31);
  const { subscriptionId } = await createOn(api, testClockId);
  const ref = { merchantId: api.merchant.merchantId, subscriptionId };
  api.workflows.faults.isDown = true;
  const running = advance(api, testClockId, FEB_1, 'slow-advance');
  await expect
    .poll(() => read(api, testClockId))
    .toEqual({ testClockId, now: FEB_1, status: 'ADVANCING' });

  const other = await advance(api, testClockId, FEB_1 + 1);
  expectError(other, 400, 'operation_not_allowed', 'The test clock is still advancing.');

  api.workflows.faults.isDown = false;
  // In production the workflow records the reached time after a sweep has sent it the clock's new time again.
  const { version } = await stateOf(api.db, ref);
  expect(await recordClockReached(api.db, { ...ref, version }, FEB_1)).toBeNull();
  expect((await running).json).toEqual({ testClockId, now: FEB_1, status: 'READY' });
  const repeated = await advance(api, testClockId, FEB_1, 'slow-advance');
  expect(repeated.json).toEqual({ testClockId, now: FEB_1, status: 'READY' });
  expect(repeated.headers['idempotent-replayed']).toBe('true');
});

test('an advance that answered ADVANCING is READY in a repeat with its key after a further advance, also while that runs [D-17, D-60]', async ({
  createApi,
}) => {
  const api = await createApi({ clockWaitMs: 500 });
  const testClockId = await createClock(api, JAN_31);
  const { subscriptionId } = await createOn(api, testClockId);
  const ref = { merchantId: api.merchant.merchantId, subscriptionId };
  const reach = async (at: number) => {
    const { version } = await stateOf(api.db, ref);
    expect(await recordClockReached(api.db, { ...ref, version }, at)).toBeNull();
  };
  api.workflows.faults.isDown = true;
  const first = await advance(api, testClockId, FEB_1, 'first-advance');
  expect(first.json).toMatchObject({ status: 'ADVANCING' });
  await reach(FEB_1);
  const second = await advance(api, testClockId, FEB_1 + 1, 'second-advance');
  expect(second.json).toMatchObject({ status: 'ADVANCING' });
  const repeated = await advance(api, testClockId, FEB_1, 'first-advance');
  expect(repeated.json).toEqual({ testClockId, now: FEB_1, status: 'READY' });
  await reach(FEB_1 + 1);
  expect((await advance(api, testClockId, FEB_1, 'first-advance')).text).toBe(repeated.text);
  expect(await read(api, testClockId)).toMatchObject({ now: FEB_1 + 1, status: 'READY' });
  api.workflows.faults.isDown = false;
});

test('an advance of a test clock answers ADVANCING at its time limit; a later repeat with the same key answers READY [D-17, D-60]', async ({
  createApi,
}) => {
  const api = await createApi({ clockWaitMs: 500 });
  const testClockId = await createClock(api, JAN_31);
  const { subscriptionId } = await createOn(api, testClockId);
  api.workflows.faults.isDown = true;
  const late = await advance(api, testClockId, FEB_1, 'late-advance');
  api.workflows.faults.isDown = false;
  // A repeat may also answer ADVANCING, because this API waits for the subscriptions for at most 500 ms.
  const repeated = await eventually(async () => {
    const answer = await advance(api, testClockId, FEB_1, 'late-advance');
    expect(answer.json).toMatchObject({ status: 'READY' });
    return answer;
  });

  expect([late.status, late.json]).toEqual([200, { testClockId, now: FEB_1, status: 'ADVANCING' }]);
  expect([repeated.status, repeated.json]).toEqual([
    200,
    { testClockId, now: FEB_1, status: 'READY' },
  ]);
  expect(repeated.headers['idempotent-replayed']).toBeUndefined();
  const [row] = await api.db
    .select({ reachedAt: subscriptions.clockReachedAt })
    .from(subscriptions)
    .where(eq(subscriptions.id, subscriptionId));
  expect(row).toEqual({ reachedAt: FEB_1 });
});
