import { z } from 'zod';
import { epochMs, id } from '../../openapi/answer-fields.ts';
import { bodyFields } from '../../openapi/operation.ts';
import type { Operation } from '../../openapi/operation.ts';
import { AdvanceTestClockBody, CreateTestClockBody } from './schema.ts';

const now = epochMs('The time of the clock.');

/** Rule: D-60. */
const TestClock = z
  .object({
    testClockId: id('clk', 'test clock'),
    now,
    status: z.enum(['READY', 'ADVANCING']).meta({
      description: 'READY: every subscription on the clock has reached `now`.',
    }),
  })
  .meta({ id: 'TestClock' });

const CLOCK_ID = 'clk_0002sSOLuU7pZ3cXvB5nMkQs';
const ready = { testClockId: CLOCK_ID, now: 1_798_761_600_000, status: 'READY' };

export const testClockOperations: readonly Operation[] = [
  {
    operationId: 'createTestClock',
    method: 'post',
    path: '/test-clock/create',
    tag: 'Test clocks',
    summary: 'Create a test clock',
    description: 'The clock stands still until it is advanced. Test credentials only.',
    isExtension: true,
    idempotencyKey: 'honoured',
    body: bodyFields(
      CreateTestClockBody,
      { now: 'Start time, in epoch milliseconds. Default: the present.' },
      [
        { summary: 'The present', value: {} },
        { summary: 'A given time', value: { now: 1_798_761_600_000 } },
      ],
    ),
    answer: {
      description: 'The test clock was created.',
      schema: z.object({ testClockId: id('clk', 'test clock'), now }),
      examples: [{ summary: 'Created', value: { testClockId: CLOCK_ID, now: 1_798_761_600_000 } }],
    },
    refusals: ['operation_not_allowed'],
  },
  {
    operationId: 'advanceTestClock',
    method: 'post',
    path: '/test-clock/advance',
    tag: 'Test clocks',
    summary: 'Advance a test clock',
    description:
      'Everything due up to `to` happens, in order. The call waits at most 25 seconds and then answers ' +
      'ADVANCING: read the clock until it is READY. The call does not wait for webhooks.',
    isExtension: true,
    idempotencyKey: 'honoured',
    body: bodyFields(
      AdvanceTestClockBody,
      {
        testClockId: 'Id of the test clock.',
        to: 'Epoch milliseconds, not before the time of the clock.',
      },
      [{ summary: 'To a date', value: { testClockId: CLOCK_ID, to: 1_798_761_600_000 } }],
    ),
    answer: {
      description: 'The clock has reached `to`, or is still advancing.',
      schema: TestClock,
      examples: [{ summary: 'Ready', value: ready }],
    },
    refusals: ['operation_not_allowed', 'resource_not_found'],
  },
  {
    operationId: 'getTestClock',
    method: 'get',
    path: '/test-clock/:testClockId',
    tag: 'Test clocks',
    summary: 'Read a test clock',
    description: 'Shows whether the clock is still advancing.',
    isExtension: true,
    params: { testClockId: { description: 'Id of a test clock.', example: CLOCK_ID } },
    answer: {
      description: 'The clock.',
      schema: TestClock,
      examples: [{ summary: 'Ready', value: ready }],
    },
    refusals: ['operation_not_allowed', 'resource_not_found'],
  },
];
