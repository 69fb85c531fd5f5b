import { Worker } from '@temporalio/worker';
import { describe, expect, inject } from 'vitest';
import {
  wake,
  WEBHOOK_ENDPOINT_WORKFLOW,
  webhookEndpointWorkflowId,
} from '../../workflows/webhook-endpoint/messages.ts';
import type { webhookEndpoint } from '../../workflows/webhook-endpoint/workflow.ts';
import { startTimeSkippingServer } from '../support/temporal-servers.ts';
import { onWebhookQueues } from '../support/webhook-environment.ts';

const HOUR_MS = 3_600_000;
/** The sum of the delays: 5 s + 5 min + 30 min + 2 h + 5 h + 10 h + 14 h + 20 h + 24 h. */
const SCHEDULE_MS = 272_105_000;

// oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
const it = onWebhookQueues.extend('server', async ({}, { onCleanup }) => {
  const server = await startTimeSkippingServer();
  onCleanup(() => server.teardown());
  return server;
});

describe('an event', () => {
  it('is marked FAILED after ten attempts in 75.6 hours when its endpoint stays down [D-54]', async ({
    server,
    env,
  }) => {
    const receiver = await env.startReceiver();
    const configId = await env.addConfig({ url: receiver.url });
    await env.emit(1_999);
    receiver.answerWith({ status: 503 });
    const { merchantId } = env;
    const workflowWorker = await Worker.create({
      connection: server.nativeConnection,
      taskQueue: 'billing',
      workflowBundle: { codePath: inject('workflowBundlePath') },
    });
    const activityWorker = await Worker.create({
      connection: server.nativeConnection,
      taskQueue: 'webhooks',
      activities: env.activities,
    });
    const delivering = async () => {
      const handle = await server.client.workflow.signalWithStart<typeof webhookEndpoint>(
        WEBHOOK_ENDPOINT_WORKFLOW,
        {
          workflowId: webhookEndpointWorkflowId(configId),
          taskQueue: 'billing',
          args: [{ merchantId, configId }],
          signal: wake,
          signalArgs: [],
        },
      );
      await handle.result();
      const { startTime, closeTime } = await handle.describe();
      return (closeTime?.getTime() ?? Number.NaN) - startTime.getTime();
    };
    const tookMs = await workflowWorker.runUntil(activityWorker.runUntil(delivering()));
    await receiver.close();

    expect(await env.progress(configId)).toEqual(['1 FAILED 10']);
    expect(receiver.received).toHaveLength(10);
    // The failures are those of less than five days, so the configuration stays active.
    expect((await env.config(configId)).isActive).toBe(true);
    // The workflow's time skips days; each signature has the real time.
    expect(receiver.received.every((webhook) => webhook.isStandardSignatureValid)).toBe(true);
    expect(tookMs).toBeGreaterThan(0.8 * SCHEDULE_MS);
    expect(tookMs).toBeLessThan(1.2 * SCHEDULE_MS + HOUR_MS);
  });
});
