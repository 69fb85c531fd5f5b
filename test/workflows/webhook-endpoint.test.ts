import { randomUUID } from 'node:crypto';
import { defaultPayloadConverter } from '@temporalio/common';
import type { SignalDefinition } from '@temporalio/common';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { beforeEach, describe, expect, inject } from 'vitest';
import type { DrainEndpointInput, DrainEndpointResult } from '../../activities/webhooks/drain.ts';
import type { WebhookActivities } from '../../activities/webhooks/delivery.ts';
import {
  breakerClosed,
  wake,
  WEBHOOK_ENDPOINT_PRIORITY,
  WEBHOOK_ENDPOINT_WORKFLOW,
  webhookEndpointWorkflowId,
} from '../../workflows/webhook-endpoint/messages.ts';
import type { EndpointRef } from '../../domain/endpoint-breaker.ts';
import type { webhookEndpoint } from '../../workflows/webhook-endpoint/workflow.ts';
import { onTimeSkippingServer as it } from '../support/environment.ts';
import { detailsOf } from '../support/workflow-details.ts';

const NOTHING_LEFT: DrainEndpointResult = { remaining: 0, nextDelayMs: null, pausedMs: 0 };
const MERCHANT_ID = 'mer_1';

let queuePrefix: string;
let input: EndpointRef;
/** The input of each drain: one call of the activity drainEndpoint, which the tests replace. */
let drains: DrainEndpointInput[];
/** The value of `performance.now()` at the start of the test. */
let startedAt: number;

beforeEach(() => {
  startedAt = performance.now();
  queuePrefix = `${randomUUID()}-`;
  input = { merchantId: MERCHANT_ID, configId: `whc_${randomUUID()}` };
  drains = [];
});

/** Runs `test` with a worker for each part. `drain`: the results of the first drains, or a function of the number. */
async function withWorkers(
  server: TestWorkflowEnvironment,
  drain:
    | readonly DrainEndpointResult[]
    | ((number: number) => DrainEndpointResult | Promise<DrainEndpointResult>),
  test: () => Promise<void>,
): Promise<void> {
  const activities: Pick<WebhookActivities, 'drainEndpoint'> = {
    async drainEndpoint(call) {
      drains.push(call);
      if (typeof drain === 'function') return drain(drains.length);
      return drain[drains.length - 1] ?? NOTHING_LEFT;
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

const send = (server: TestWorkflowEnvironment, signal: SignalDefinition) =>
  server.client.workflow.signalWithStart<typeof webhookEndpoint>(WEBHOOK_ENDPOINT_WORKFLOW, {
    workflowId: webhookEndpointWorkflowId(input.configId),
    taskQueue: `${queuePrefix}billing`,
    args: [input],
    signal,
    signalArgs: [],
  });
const wakeQueue = (server: TestWorkflowEnvironment) => send(server, wake);

/** Milliseconds of the workflow's time between one drain and the next. */
const gaps = () => drains.slice(1).map((call, index) => call.nowAt - (drains[index]?.nowAt ?? 0));

/**
 * Expects that each gap is a timer's delay, plus at most the real time since the start of the test: the server's clock
 * skips only timers and sleeps, and runs in real time during a workflow task and a drain.
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

async function timersOf(handle: Awaited<ReturnType<typeof wakeQueue>>): Promise<unknown[]> {
  const { events } = await handle.fetchHistory();
  return (events ?? [])
    .filter((event) => event.timerStartedEventAttributes)
    .map((event) => defaultPayloadConverter.fromPayload(event.userMetadata?.summary ?? {}));
}

const unchangedInput = () => ({ ...input, nowAt: expect.any(Number) as number });

describe('an endpoint queue, the workflow of one webhook endpoint,', () => {
  it('drains at once on a wake-up during a wait, and names the next attempt in its current details [D-54]', async ({
    server,
  }) => {
    const results = [
      { remaining: 1, nextDelayMs: 7_200_000, pausedMs: 0 },
      { remaining: 2, nextDelayMs: 6_600_000, pausedMs: 0 },
    ];
    await withWorkers(server, results, async () => {
      const handle = await wakeQueue(server);
      await expect
        .poll(() => detailsOf(handle))
        .toMatch(/^1 delivery left\. Next attempt at \S+Z\.$/);
      await server.sleep(600_000);
      await wakeQueue(server);
      await handle.result();
      expect(await timersOf(handle)).toEqual([
        'next attempt of 1 delivery',
        'next attempt of 2 deliveries',
      ]);
    });
    expectGaps([600_000, 6_600_000]);
  });

  it('waits for the end of a breaker pause with one timer, also when wake-ups arrive [D-54]', async ({
    server,
  }) => {
    await withWorkers(
      server,
      [{ remaining: 9, nextDelayMs: 60_000, pausedMs: 60_000 }],
      async () => {
        const handle = await wakeQueue(server);
        await expect.poll(() => drains).toHaveLength(1);
        await server.sleep(1_000);
        for (let count = 0; count < 5; count += 1) await wakeQueue(server);
        await server.sleep(30_000);
        await wakeQueue(server);
        expect(drains).toHaveLength(1);
        await handle.result();
        expect(await timersOf(handle)).toEqual(['next probe with one of 9 deliveries']);
      },
    );
    expectGaps([60_000]);
  });

  it('drains at once when a changed configuration closes the breaker [D-55]', async ({
    server,
  }) => {
    await withWorkers(
      server,
      [{ remaining: 9, nextDelayMs: 60_000, pausedMs: 60_000 }],
      async () => {
        const handle = await wakeQueue(server);
        await expect.poll(() => drains).toHaveLength(1);
        await server.sleep(10_000);
        await send(server, breakerClosed);
        await handle.result();
      },
    );
    expectGaps([10_000]);
  });

  it('drains once more at the end of a breaker pause when nothing is pending [D-54]', async ({
    server,
  }) => {
    await withWorkers(
      server,
      [{ remaining: 0, nextDelayMs: 60_000, pausedMs: 60_000 }],
      async () => {
        const handle = await wakeQueue(server);
        await expect
          .poll(() => detailsOf(handle))
          .toMatch(/^0 deliveries left\. The endpoint is down; next probe at \S+Z\.$/);
        await handle.result();
        expect(await timersOf(handle)).toEqual(['next probe with one of 0 deliveries']);
      },
    );
    expectGaps([60_000]);
  });

  it('drains again after a wake-up that arrives during a drain [D-54]', async ({ server }) => {
    await withWorkers(
      server,
      async (drain) => {
        if (drain === 1) await wakeQueue(server);
        return NOTHING_LEFT;
      },
      async () => {
        await (await wakeQueue(server)).result();
      },
    );
    expect(drains).toHaveLength(2);
  });

  it('is started again by a wake-up after its end [D-54]', async ({ server }) => {
    await withWorkers(server, [], async () => {
      const first = await wakeQueue(server);
      await first.result();
      const second = await wakeQueue(server);
      await second.result();
      expect(second.signaledRunId).not.toBe(first.signaledRunId);
    });
    expect(drains).toHaveLength(2);
  });

  it('retries failed drains with a growing backoff that wake-ups do not shorten [D-54]', async ({
    server,
  }) => {
    await withWorkers(
      server,
      async (drain) => {
        if (drain > 6) return NOTHING_LEFT;
        await wakeQueue(server);
        throw new Error('the database is away');
      },
      async () => {
        await (await wakeQueue(server)).result();
      },
    );
    expectGaps([5_000, 10_000, 20_000, 40_000, 60_000, 60_000]);
  });

  it('continues as new with the same input before its history has 450 events [D-54]', async ({
    server,
  }) => {
    await withWorkers(
      server,
      (drain) => (drain === 80 ? NOTHING_LEFT : { remaining: 1, nextDelayMs: 60_000, pausedMs: 0 }),
      async () => {
        const handle = await wakeQueue(server);
        await handle.result();
        const lastRun = server.client.workflow.getHandle(handle.workflowId);
        const { runId, historyLength } = await lastRun.describe();
        expect(runId).not.toBe(handle.signaledRunId);
        expect(historyLength).toBeLessThan(450);
      },
    );
    expect(drains).toHaveLength(80);
    expect(drains.at(-1)).toEqual(unchangedInput());
  });

  it('has its activity at the lowest priority, with the merchant as fairness key, and does not wait for a worker for ever [D-54]', async ({
    server,
  }) => {
    await withWorkers(server, [], async () => {
      const handle = await wakeQueue(server);
      await handle.result();
      const { events } = await handle.fetchHistory();
      const scheduled = events?.find((event) => event.activityTaskScheduledEventAttributes);
      const attributes = scheduled?.activityTaskScheduledEventAttributes;
      expect(attributes?.priority).toMatchObject({
        priorityKey: WEBHOOK_ENDPOINT_PRIORITY,
        fairnessKey: MERCHANT_ID,
      });
      expect(Number(attributes?.scheduleToStartTimeout?.seconds)).toBe(60);
    });
  });
});
