import { z } from 'zod';
import {
  countBehind,
  findTestClock,
  insertTestClock,
  sendTestClock,
  subscriptionsBehind,
} from '../../../db/repositories/merchants/test-clocks.ts';
import type { TestClock } from '../../../db/repositories/merchants/test-clocks.ts';
import { newId } from '../../../domain/ids.ts';
import { epochMs, id } from '../../answer-fields.ts';
import { found, ok } from '../../http/request.ts';
import { idText, instant, optional } from '../../fields.ts';
import { writeOnce, executeOnce } from '../../http/idempotency.ts';
import { route } from '../../http/route.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatInstant } from '../../../domain/calendar.ts';
import { DomainError } from '../../../domain/errors.ts';
import type { ApiDeps } from '../../deps.ts';
import { causesOf } from '../../http/every-request.ts';

const CLOCK_ID = 'clk_0002sSOLuU7pZ3cXvB5nMkQs';

const now = epochMs('The time of the clock.');

const TestClockAnswer = z
  .object({
    testClockId: id('clk', 'test clock'),
    now,
    status: z.enum(['READY', 'ADVANCING']).meta({
      description: 'READY: every subscription on the clock has reached `now` or is ENDED.',
    }),
  })
  .meta({ id: 'TestClock' });

const ready = { testClockId: CLOCK_ID, now: 1_801_440_000_000, status: 'READY' } as const;

function presentTestClock(clock: TestClock, isReady: boolean) {
  return {
    testClockId: clock.id,
    now: clock.targetAt,
    status: isReady ? ('READY' as const) : ('ADVANCING' as const),
  };
}

export const createTestClock = route({
  operationId: 'createTestClock',
  method: 'post',
  path: '/test-clock/create',
  tag: 'Test clocks',
  summary: 'Create a test clock',
  description:
    'The time of the clock changes only when you advance the clock. Test credentials only.',
  isExtension: true,
  isTestOnly: true,
  idempotencyKey: 'honoured',
  body: {
    fields: {
      now: optional(instant).describe('Start time, in epoch milliseconds. Default: the present.'),
    },
    examples: { 'The present': {}, 'A given time': { now: 1_798_761_600_000 } },
  },
  answer: {
    description: 'The test clock was created.',
    schema: z.object({ testClockId: id('clk', 'test clock'), now }),
    examples: { Created: { testClockId: CLOCK_ID, now: 1_798_761_600_000 } },
  },
  refusals: ['operation_not_allowed'],
  handle: async (call, deps) =>
    writeOnce(call, deps, async (tx) => {
      const createdAt = deps.now();
      const targetAt = call.body.now ?? createdAt;
      const testClockId = newId('clk', createdAt, deps.random);
      await insertTestClock(tx, {
        merchantId: call.merchant.id,
        id: testClockId,
        targetAt,
        createdAt,
      });
      return { answer: ok({ testClockId, now: targetAt }) };
    }),
});

export const advanceTestClock = route({
  operationId: 'advanceTestClock',
  method: 'post',
  path: '/test-clock/advance',
  tag: 'Test clocks',
  summary: 'Advance a test clock',
  description:
    'Executes everything that is due up to `to`, in order. If that takes longer than 25 seconds, the call ' +
    'answers ADVANCING: read the clock until it is READY. The call does not wait for webhooks.',
  isExtension: true,
  isTestOnly: true,
  idempotencyKey: 'honoured',
  body: {
    fields: {
      testClockId: idText().describe('Id of the test clock.'),
      to: instant.describe('Epoch milliseconds, not before the time of the clock.'),
    },
    examples: { 'To a date': { testClockId: CLOCK_ID, to: 1_801_440_000_000 } },
  },
  answer: {
    description: 'The clock has reached `to`, or is still advancing.',
    schema: TestClockAnswer,
    examples: { Ready: ready },
  },
  refusals: ['operation_not_allowed', 'resource_not_found'],
  handle: async (call, deps) =>
    executeOnce(call, deps, async ({ isRepeat }) => {
      const clock = await setClockTarget(deps, call.merchant.id, { ...call.body, isRepeat });
      const isReady = await waitUntilReached(deps, clock);
      return { ...ok(presentTestClock(clock, isReady)), isDefinite: isReady };
    }),
});

export const getTestClock = route({
  operationId: 'getTestClock',
  method: 'get',
  path: '/test-clock/:testClockId',
  tag: 'Test clocks',
  summary: 'Read a test clock',
  description: 'Shows whether the clock is still advancing.',
  isExtension: true,
  isTestOnly: true,
  params: { testClockId: { description: 'Id of a test clock.', example: CLOCK_ID } },
  answer: {
    description: 'The clock.',
    schema: TestClockAnswer,
    examples: { Ready: ready },
  },
  refusals: ['operation_not_allowed', 'resource_not_found'],
  handle: async ({ merchant, params }, { db }) => {
    const clock = found(await findTestClock(db, merchant.id, params.testClockId), 'test clock');
    return ok(presentTestClock(clock, (await countBehind(db, clock)) === 0));
  },
});

/** Default of `clockWaitMs`, the longest wait for the subscriptions of the clock. */
const DEFAULT_WAIT_MS = 25_000;
const FIRST_POLL_MS = 20;
const SLOWEST_POLL_MS = 1_000;
/** Maximum number of signals that are sent at the same time. */
const PARALLEL_SIGNALS = 16;

/**
 * Sets the clock's target. The caller must signal the subscriptions after the commit; else the sweep does.
 * `isRepeat`: an earlier call may have committed it.
 * @throws DomainError for an earlier target, and while it advances.
 */
async function setClockTarget(
  { db }: ApiDeps,
  merchantId: string,
  order: { testClockId: string; to: number; isRepeat: boolean },
): Promise<TestClock> {
  const { testClockId, to, isRepeat } = order;
  return db.transaction(async (tx) => {
    const clock = found(await findTestClock(tx, merchantId, testClockId, 'update'), 'test clock');
    // A later advance may have moved the clock further since.
    if (isRepeat && clock.targetAt >= to) return { ...clock, targetAt: to };
    if ((await countBehind(tx, clock)) > 0) {
      throw new DomainError('operation_not_allowed', 'The test clock is still advancing.');
    }
    if (to < clock.targetAt) {
      const present = formatInstant(clock.targetAt);
      // Not a UnstoredRefusal, because this refusal depends on the clock and must be stored under the Idempotency-Key.
      throw new DomainError('bad_request', `to: must not lie before ${present}`);
    }
    await sendTestClock(tx, clock, to);
    return { ...clock, targetAt: to };
  });
}

/** True if all have reached the target within `clockWaitMs`. The sweep repeats a signal that failed. */
async function waitUntilReached(deps: ApiDeps, clock: TestClock): Promise<boolean> {
  const deadline = performance.now() + (deps.clockWaitMs ?? DEFAULT_WAIT_MS);
  // Not awaited, because the rows show which subscriptions have reached the target.
  signalSubscriptions(deps, clock, deadline).catch((error: unknown) => {
    deps.logger.warn(
      { testClockId: clock.id, causes: causesOf(error) },
      'cannot signal the subscriptions of a test clock; the sweep repeats it',
    );
  });
  let pollMs = FIRST_POLL_MS;
  for (;;) {
    if ((await countBehind(deps.db, clock)) === 0) return true;
    if (performance.now() + pollMs > deadline) return false;
    await sleep(pollMs);
    pollMs = Math.min(pollMs * 1.5, SLOWEST_POLL_MS);
  }
}

async function signalSubscriptions(
  { db, workflows, logger }: ApiDeps,
  clock: TestClock,
  deadline: number,
): Promise<void> {
  const behind = await subscriptionsBehind(db, clock);
  const signalNext = async (): Promise<void> => {
    for (;;) {
      const subscriptionId = behind.shift();
      if (subscriptionId === undefined || performance.now() > deadline) return;
      const ref = { merchantId: clock.merchantId, subscriptionId };
      await workflows.advanceClock(ref, clock.targetAt).catch(() => {
        logger.warn(ref, 'cannot signal the subscription of a test clock; the sweep repeats it');
      });
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_SIGNALS }, signalNext));
}
