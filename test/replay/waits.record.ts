import { describe, expect, vi } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import { NOTHING_FOUND } from '../../activities/repair/sweep.ts';
import { orderWorkflowId } from '../../workflows/orders/messages.ts';
import {
  GATEWAY_SUBJECT_WORKFLOW,
  gatewaySubjectWorkflowId,
} from '../../workflows/gateway-subject/messages.ts';
import {
  MAINTENANCE_WORKFLOW,
  maintenanceWorkflowId,
} from '../../workflows/maintenance/messages.ts';
import {
  breakerClosed,
  wake,
  WEBHOOK_ENDPOINT_WORKFLOW,
  webhookEndpointWorkflowId,
} from '../../workflows/webhook-endpoint/messages.ts';
import { onTimeSkippingServerWith } from '../support/environment.ts';
import type { TimeSkippingEnvironment } from '../support/test-environment.ts';
import { isFollowed, keep, keepEnded, pay, recorderOn } from './recorder.ts';

/**
 * Records histories of workflows that wait for minutes or days, on a Temporal server that skips the time of the waits.
 */

/** The number of further calls of `chargePayment` that are answered `pending`. */
const pendingLeft = { chargePayment: 45 };
/** The number of drains of the endpoint queue so far. */
let drained = 0;
/** Ends the first call of `handleGatewaySubject`. */
let endFirstLook: (() => void) | null = null;

const record = recorderOn(onTimeSkippingServerWith({ wrap: withFakeAnswers }));

/** Replaces activities, because these paths record only the waits of the workflows. */
function withFakeAnswers(activities: Activities): Activities {
  return {
    ...activities,
    chargePayment: async () => {
      pendingLeft.chargePayment -= 1;
      return pendingLeft.chargePayment < 0 ? { kind: 'succeeded' } : { kind: 'pending' };
    },
    drainEndpoint: async () => {
      drained += 1;
      if (drained === 1) throw new Error('the database is away');
      if (drained > 60) return { remaining: 0, nextDelayMs: null, pausedMs: 0 };
      const pausedMs = drained <= 4 ? 60_000 : 0;
      return { remaining: 3, nextDelayMs: pausedMs || 3_600_000, pausedMs };
    },
    sweep: async () => NOTHING_FOUND,
    handleGatewaySubject: async () => {
      if (endFirstLook === null) await new Promise<void>((resolve) => (endFirstLook = resolve));
    },
    lookForLateCharge: async ({ lookups = 0 }) => ({ kind: lookups < 5 ? 'pending' : 'absent' }),
  };
}

async function startWorkflow(
  env: TimeSkippingEnvironment,
  type: string,
  workflowId: string,
  input: object,
) {
  const taskQueue = `${env.taskQueuePrefix}billing`;
  return env.client.workflow.start(type, { workflowId, taskQueue, args: [input] });
}

describe('record', () => {
  record('payment-long', async ({ env }) => {
    const { merchantId } = env;
    const workflowId = orderWorkflowId('payment', 'in_that_waits');
    const order = { merchantId, intentId: 'in_that_waits', token: null };
    const input = { order, lookups: 0 };
    await (await startWorkflow(env, 'payment', workflowId, input)).result();
    expect(await keep(env, 'payment-long', workflowId)).toBe(2);
  });

  record('long', async ({ env }) => {
    const createdAt = await env.server.currentTimeMs();
    const ref = await env.create({ createdAt, terms: { cycleCount: 24 } });
    await pay(env, ref);
    await env.server.sleep(800 * 86_400_000);
    expect(await keepEnded(env, 'long', ref)).toBeGreaterThan(2);
  });

  record('notices', async ({ env }) => {
    const createdAt = await env.server.currentTimeMs();
    const ref = await env.create({ createdAt, terms: { interval: 'YEAR', cycleCount: 2 } });
    await pay(env, ref);
    const edit = { kind: 'edit', commandId: 'edit-1', newAmountMinor: 2_500 } as const;
    await env.execute(ref, edit);
    await env.server.sleep(400 * 86_400_000);
    expect(await keepEnded(env, 'notices', ref)).toBe(1);
  });

  record('webhook-endpoint-long', async ({ env }) => {
    const { merchantId } = env;
    const workflowId = webhookEndpointWorkflowId('whc_that_waits');
    const input = { merchantId, configId: 'whc_that_waits' };
    const handle = await startWorkflow(env, WEBHOOK_ENDPOINT_WORKFLOW, workflowId, input);
    // Sends a wake-up during each of two breaker pauses.
    for (const drains of [2, 3]) {
      await vi.waitFor(() => expect(drained).toBe(drains), 20_000);
      await handle.signal(wake);
      await env.server.sleep(61_000);
    }
    await vi.waitFor(() => expect(drained).toBe(4), 20_000);
    await handle.signal(breakerClosed);
    await handle.result();
    expect(await keep(env, 'webhook-endpoint-long', workflowId)).toBe(2);
  });

  record('gateway-subject', async ({ env }) => {
    const { merchantId } = env;
    const subject = { merchantId, gateway: 'stripe', subjectId: 'pi_of_events' };
    const workflowId = gatewaySubjectWorkflowId(subject);
    const handle = await startWorkflow(env, GATEWAY_SUBJECT_WORKFLOW, workflowId, subject);
    await vi.waitFor(() => expect(endFirstLook).not.toBeNull(), 20_000);
    await handle.signal('wake');
    endFirstLook?.();
    await handle.result();
    expect(await keep(env, 'gateway-subject', workflowId)).toBe(1);
  });

  record('late-charge-none', async ({ env }) => {
    const { merchantId } = env;
    const workflowId = orderWorkflowId('lateCharge', 'att_that_waits');
    const input = { order: { merchantId, attemptId: 'att_that_waits' }, lookups: 0 };
    await (await startWorkflow(env, 'lateCharge', workflowId, input)).result();
    expect(await keep(env, 'late-charge-none', workflowId)).toBe(1);
  });

  record('maintenance-long', async ({ env }) => {
    const workflowId = maintenanceWorkflowId(env.taskQueuePrefix);
    const handle = await startWorkflow(env, MAINTENANCE_WORKFLOW, workflowId, {});
    await env.server.sleep(1_100_000);
    await isFollowed(handle, handle.firstExecutionRunId);
    expect(await keep(env, 'maintenance-long', workflowId)).toBe(2);
  });
});
