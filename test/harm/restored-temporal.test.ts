import { eq, sql } from 'drizzle-orm';
import { expect } from 'vitest';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServer as test } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { repairsOf } from '../support/repairs.ts';

test('the sweep starts a workflow that a restored Temporal does not know, before its next charge is due [D-40]', async ({
  env,
}) => {
  const kept = await env.create({ createdAt: Date.now() });
  const ref = await env.create({ createdAt: Date.now() });
  await payCheckout(env, kept);
  await payCheckout(env, ref);
  const handle = env.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
  await env.client.workflowService.deleteWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: handle.workflowId },
  });
  await eventually(async () => expect(handle.describe()).rejects.toThrow('not found'));
  await env.db
    .update(subscriptions)
    .set({ workflowStartedAt: sql`now() - interval '10 minutes'` })
    .where(eq(subscriptions.merchantId, env.merchantId));

  // Temporal's list of workflows lags behind. The sweep counts them every 5 min.
  let nowAt = Date.now();
  const later = () => repairsOf(env, 0, (nowAt += 300_000));
  await expect.poll(later, { timeout: 20_000 }).toEqual({ lost: 1 });
  expect((await handle.describe()).status.name).toBe('RUNNING');
  await expect.poll(later).toEqual({});
  expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 1 });
  expect(await env.book(ref)).toHaveLength(1);
  expect(await env.book(kept)).toHaveLength(1);
});
