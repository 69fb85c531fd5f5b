import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { describe, expect } from 'vitest';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServer as test } from '../support/environment.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { lengthenHistory } from '../support/subscriptions.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import { detailsOf } from '../support/workflow-details.ts';
import { eventually } from '../support/eventually.ts';

/** The texts that the Temporal Web UI shows about a subscription, read from a real Temporal server. */

const JAN_10 = Date.parse('2027-01-10T00:00:00Z');
const handleOf = (
  { client }: Pick<TestEnvironment, 'client'>,
  { subscriptionId }: SubscriptionRef,
) => client.workflow.getHandle(subscriptionWorkflowId(subscriptionId));

async function idsWith(client: Client, receiptId: string): Promise<string[]> {
  const ids: string[] = [];
  const query = `ReceiptId = '${receiptId}'`;
  for await (const { workflowId } of client.workflow.list({ query })) ids.push(workflowId);
  return ids;
}

describe('the workflow of a subscription shows operators', () => {
  test('its product and its receiptId also in a later run', async ({ env }) => {
    const receiptId = `order ${randomUUID()}`;
    const clock = await env.createClock(JAN_10);
    const terms = { interval: 'DAY', cycleCount: 14 } as const;
    const ref = await env.create({
      createdAt: JAN_10,
      testClockId: clock,
      terms,
      receiptId,
      productName: 'Tea',
    });
    await payCheckout(env, ref);
    const handle = handleOf(env, ref);
    await lengthenHistory(handle, JAN_10, 400);
    await env.advance(clock, '2027-01-20T00:00:00Z');
    const later = await eventually(async () => {
      const run = await handle.describe();
      expect(run.raw.workflowExecutionInfo?.firstRunId).not.toBe(run.runId);
      return run;
    });
    expect(later.status.name).toBe('RUNNING');
    expect(later.memo).toEqual({ productName: 'Tea' });
    expect(await detailsOf(handle)).toContain('Tea, 19.99 USD every day, 11 of 14 cycles paid.');
    const workflowId = subscriptionWorkflowId(ref.subscriptionId);
    // Every run of the workflow is listed.
    await expect
      .poll(async () => new Set(await idsWith(env.client, receiptId)))
      .toEqual(new Set([workflowId]));
    expect((await idsWith(env.client, receiptId)).length).toBeGreaterThan(1);
    await env.advance(clock, '2027-02-01T00:00:00Z');
    expect(await handle.result()).toEqual({
      status: 'ENDED',
      endReason: 'completed',
      cyclesPaid: 14,
      cycleCount: 14,
    });
  });
});
