import { z } from 'zod';
import {
  countBehind,
  findTestClock,
  insertTestClock,
} from '../../../db/repositories/merchants/test-clocks.ts';
import type { TestClock } from '../../../db/repositories/merchants/test-clocks.ts';
import { newId } from '../../../domain/ids.ts';
import { epochMs, id } from '../../answer-fields.ts';
import { found, ok } from '../../answers.ts';
import { idText, instant, optional } from '../../fields.ts';
import { inTransaction, withOutcome } from '../../idempotency.ts';
import { route } from '../../route.ts';
import { setClockTarget, waitUntilReached } from './advance.ts';

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
    examples: [
      { summary: 'The present', value: {} },
      { summary: 'A given time', value: { now: 1_798_761_600_000 } },
    ],
  },
  answer: {
    description: 'The test clock was created.',
    schema: z.object({ testClockId: id('clk', 'test clock'), now }),
    examples: [{ summary: 'Created', value: { testClockId: CLOCK_ID, now: 1_798_761_600_000 } }],
  },
  refusals: ['operation_not_allowed'],
  handle: async (call, deps) =>
    inTransaction(call, deps, async (tx) => {
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
    examples: [{ summary: 'To a date', value: { testClockId: CLOCK_ID, to: 1_801_440_000_000 } }],
  },
  answer: {
    description: 'The clock has reached `to`, or is still advancing.',
    schema: TestClockAnswer,
    examples: [{ summary: 'Ready', value: ready }],
  },
  refusals: ['operation_not_allowed', 'resource_not_found'],
  handle: async (call, deps) =>
    withOutcome(call, deps, async ({ isRepeat }) => {
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
    examples: [{ summary: 'Ready', value: ready }],
  },
  refusals: ['operation_not_allowed', 'resource_not_found'],
  handle: async ({ merchant, params }, { db }) => {
    const clock = found(await findTestClock(db, merchant.id, params.testClockId), 'test clock');
    return ok(presentTestClock(clock, (await countBehind(db, clock)) === 0));
  },
});
