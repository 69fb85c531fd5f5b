import { randomUUID } from 'node:crypto';
import { defaultPayloadConverter } from '@temporalio/common';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { beforeEach, describe, expect, inject } from 'vitest';
import type {
  DeliverPendingInput,
  DeliverPendingResult,
  WebhookActivities,
} from '../../activities/webhooks.ts';
import { ATTEMPT_DELAYS_MS, delayAfterFailure } from '../../domain/delivery-schedule.ts';
import {
  wake,
  WEBHOOK_STREAM_WORKFLOW,
  webhookStreamWorkflowId,
} from '../../workflows/webhook-stream/messages.ts';
import type { WebhookStreamInput } from '../../workflows/webhook-stream/messages.ts';
import type { webhookStream } from '../../workflows/webhook-stream/workflow.ts';
import { onTimeSkippingServer as it } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { detailsOf } from '../support/workflow-details.ts';

const NOTHING_LEFT: DeliverPendingResult = { remaining: 0, nextDelayMs: null };
const MERCHANT_ID = 'mer_1';

let queuePrefix: string;
let input: WebhookStreamInput;
/** The input of each round: one call of the activity deliverPending, which the tests replace. */
let rounds: DeliverPendingInput[];
/** The value of `performance.now()` at the start of the test. */
let startedAt: number;

beforeEach(() => {
  startedAt = performance.now();
  queuePrefix = `${randomUUID()}-`;
  input = { merchantId: MERCHANT_ID, streamId: `sub_${randomUUID()}` };
  rounds = [];
});

/** Runs `test` while one worker serves the workflow and another worker the activity. */
async function withWorkers(
  server: TestWorkflowEnvironment,
  round: (number: number) => DeliverPendingResult | Promise<DeliverPendingResult>,
  test: () => Promise<void>,
): Promise<void> {
  const activities: Pick<WebhookActivities, 'deliverPending'> = {
    async deliverPending(call) {
      rounds.push(call);
      return round(rounds.length);
    },
  };
  const workflowWorker = await Worker.create({
    connection: server.nativeConnection,
    taskQueue: `${queuePrefix}billing`,
    workflowBundle: { codePath: inject('workflowBundlePath') },
  });
  const activityWorker = await Worker.create({
    connection: server.nativeConnection,
    taskQueue: `${queuePrefix}webhooks`,
    activities,
  });
  await workflowWorker.runUntil(activityWorker.runUntil(test()));
}

const wakeStream = (server: TestWorkflowEnvironment) =>
  server.client.workflow.signalWithStart<typeof webhookStream>(WEBHOOK_STREAM_WORKFLOW, {
    workflowId: webhookStreamWorkflowId(input.streamId),
    taskQueue: `${queuePrefix}billing`,
    args: [input],
    signal: wake,
    signalArgs: [],
  });

/** Milliseconds of the workflow's time between one round and the next. */
const gaps = () => rounds.slice(1).map((call, index) => call.nowAt - (rounds[index]?.nowAt ?? 0));

/**
 * Expects that each gap is a timer's delay, plus at most the real time since the start of the test: the server's clock
 * skips only timers and sleeps, and runs in real time during a workflow task and a round.
 */
function expectGaps(expected: readonly number[]): void {
  const realMs = performance.now() - startedAt;
  expect(gaps()).toHaveLength(expected.length);
  gaps().forEach((gap, index) => {
    const wait = expected[index] ?? Number.NaN;
    expect(gap, `gap ${index}`).toBeGreaterThanOrEqual(wait);
    expect(gap, `gap ${index}`).toBeLessThan(wait + realMs);
  });
}

const unchangedInput = () => ({ ...input, nowAt: expect.any(Number) as number, handOver: false });

// No release starts this workflow any more. Runs that an earlier release started may still be open.
describe('a webhook stream workflow', () => {
  it('makes ten attempts at the instants of the schedule, over 75.6 hours, and ends [D-54]', async ({
    server,
  }) => {
    await withWorkers(
      server,
      (attempts) => {
        const nextDelayMs = delayAfterFailure({ attempts, jitter: 0.5, retryAfterMs: null });
        return { remaining: nextDelayMs === null ? 0 : 1, nextDelayMs };
      },
      async () => {
        await (await wakeStream(server)).result();
      },
    );
    expect(rounds).toHaveLength(10);
    expect(rounds).toEqual(Array.from({ length: 10 }, unchangedInput));
    expectGaps(ATTEMPT_DELAYS_MS.slice(1));
  });

  it('delivers at once on a wake-up during a wait, and names the next attempt in its current details [D-54]', async ({
    server,
  }) => {
    const results = [
      { remaining: 1, nextDelayMs: 7_200_000 },
      { remaining: 2, nextDelayMs: 6_600_000 },
    ];
    await withWorkers(
      server,
      (round) => results[round - 1] ?? NOTHING_LEFT,
      async () => {
        const handle = await wakeStream(server);
        await eventually(async () => {
          expect(await detailsOf(handle)).toMatch(/^1 delivery left\. Next attempt at \S+Z\.$/);
        });
        await server.sleep(600_000);
        await wakeStream(server);
        await handle.result();

        const { events } = await handle.fetchHistory();
        const summaries = (events ?? [])
          .filter((event) => event.timerStartedEventAttributes)
          .map((event) => defaultPayloadConverter.fromPayload(event.userMetadata?.summary ?? {}));
        expect(summaries).toEqual(['next attempt of 1 delivery', 'next attempt of 2 deliveries']);
      },
    );
    expectGaps([600_000, 6_600_000]);
  });

  it('does another round after a wake-up that arrives during a round [D-54]', async ({
    server,
  }) => {
    await withWorkers(
      server,
      async (round) => {
        if (round === 1) await wakeStream(server);
        return NOTHING_LEFT;
      },
      async () => {
        await (await wakeStream(server)).result();
      },
    );
    expect(rounds).toHaveLength(2);
  });

  it('is started again by a wake-up after its end [D-54]', async ({ server }) => {
    await withWorkers(
      server,
      () => NOTHING_LEFT,
      async () => {
        const first = await wakeStream(server);
        await first.result();
        const second = await wakeStream(server);
        await second.result();
        expect(second.signaledRunId).not.toBe(first.signaledRunId);
      },
    );
    expect(rounds).toHaveLength(2);
  });

  it('retries failed rounds with a growing backoff [D-54]', async ({ server }) => {
    await withWorkers(
      server,
      (round) => {
        if (round <= 6) throw new Error('the database is away');
        return NOTHING_LEFT;
      },
      async () => {
        await (await wakeStream(server)).result();
      },
    );
    expectGaps([5_000, 10_000, 20_000, 40_000, 60_000, 60_000]);
  });

  it('continues as new with the same input before its history has 450 events [D-54]', async ({
    server,
  }) => {
    await withWorkers(
      server,
      (round) => (round === 80 ? NOTHING_LEFT : { remaining: 1, nextDelayMs: 60_000 }),
      async () => {
        const handle = await wakeStream(server);
        await handle.result();
        const lastRun = server.client.workflow.getHandle(handle.workflowId);
        const { runId, historyLength } = await lastRun.describe();
        expect(runId).not.toBe(handle.signaledRunId);
        expect(historyLength).toBeLessThan(450);
      },
    );
    expect(rounds).toHaveLength(80);
    expect(rounds.at(-1)).toEqual(unchangedInput());
  });
});
