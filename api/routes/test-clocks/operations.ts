import { z } from 'zod';
import { epochMs, id } from '../../openapi/answer-fields.ts';
import { bodyFields } from '../../openapi/operation.ts';
import type { Operation } from '../../openapi/operation.ts';
import { AdvanceTestClockBody, CreateTestClockBody } from './schema.ts';

const now = epochMs('Where the clock stands.');

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
    description: 'It stands still until it is advanced. Test credentials only.',
    isExtension: true,
    idempotencyKey: 'honoured',
    body: bodyFields(
      CreateTestClockBody,
      { now: 'Where it starts, in epoch milliseconds. Default: the present.' },
      [
        { summary: 'The present', value: {} },
        { summary: 'A new year', value: { now: 1_798_761_600_000 } },
      ],
    ),
    answer: {
      description: 'The clock is there.',
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
      'Everything due up to `to` happens, in order. ADVANCING after 25 seconds means that it still ' +
      'does; read the clock to learn when it is READY. Webhooks are not waited for.',
    isExtension: true,
    idempotencyKey: 'honoured',
    body: bodyFields(
      AdvanceTestClockBody,
      {
        testClockId: 'The clock.',
        to: 'Epoch milliseconds, not before where the clock stands.',
      },
      [{ summary: 'To a date', value: { testClockId: CLOCK_ID, to: 1_798_761_600_000 } }],
    ),
    answer: {
      description: 'The clock is there, or on its way.',
      schema: TestClock,
      examples: [{ summary: 'There', value: ready }],
    },
    refusals: ['operation_not_allowed', 'resource_not_found'],
  },
  {
    operationId: 'getTestClock',
    method: 'get',
    path: '/test-clock/:testClockId',
    tag: 'Test clocks',
    summary: 'Read a test clock',
    description: 'Tells whether it is still advancing.',
    isExtension: true,
    params: { testClockId: { description: 'Id of a test clock.', example: CLOCK_ID } },
    answer: {
      description: 'The clock.',
      schema: TestClock,
      examples: [{ summary: 'There', value: ready }],
    },
    refusals: ['operation_not_allowed', 'resource_not_found'],
  },
];
