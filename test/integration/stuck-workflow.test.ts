import { eq, sql } from 'drizzle-orm';
import { expect, vi } from 'vitest';
import { subscriptionRows } from '../../db/repositories/subscriptions/transitions.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { createSubscriptionWorkflows } from '../../temporal/subscription-workflows.ts';
import {
  SUBSCRIPTION_WORKFLOW,
  stateQuery,
  subscriptionWorkflowId,
} from '../../workflows/subscription/messages.ts';
import { onDevServer as test } from '../support/environment.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { repairsOf } from '../support/repairs.ts';

const DAY = 24 * 3_600_000;
const SOON = { timeout: 20_000, interval: 100 };

test('a subscription whose workflow tasks keep failing continues from its row and is charged once [D-40]', async ({
  env,
}) => {
  const ref = await env.create({ createdAt: Date.now() });
  await payCheckout(env, ref);
  const { client, taskQueuePrefix } = env;
  const workflowId = subscriptionWorkflowId(ref.subscriptionId);
  const handle = client.workflow.getHandle(workflowId);
  const impatient = createSubscriptionWorkflows({
    client,
    rows: subscriptionRows(env.db),
    taskQueuePrefix,
    logger: env.logger,
    stuckAfterMs: 0,
  });
  expect(await impatient.replaceIfStuck(ref)).toBe(false);

  // The cycle is due, and every task of the run fails, because its state has no terms.
  const state = await env.state(ref);
  const dueState = { ...state, anchorAt: Number(state.anchorAt) - 40 * DAY };
  const longAgo = sql`now() - interval '10 minutes'`;
  await handle.terminate('replaced by a run that fails');
  await env.db
    .update(subscriptions)
    .set({ state: dueState, wakeAt: longAgo, updatedAt: longAgo })
    .where(eq(subscriptions.id, ref.subscriptionId));
  await client.workflow.start(SUBSCRIPTION_WORKFLOW, {
    workflowId,
    taskQueue: `${taskQueuePrefix}billing`,
    args: [{ state: { ...dueState, terms: null }, clock: null, deliver: false, isInDoubt: false }],
  });
  const stuck = await handle.describe();
  await vi.waitFor(async () => {
    const { events } = await handle.fetchHistory();
    expect(events?.at(-1)?.workflowTaskFailedEventAttributes).toBeTruthy();
  }, SOON);

  const isLate = async () => true;
  expect(await env.workflows.recheckUnlessBusy(ref, isLate)).toBe(false);
  expect((await handle.describe()).runId).toBe(stuck.runId);
  expect(await impatient.recheckUnlessBusy(ref, isLate)).toBe(true);
  await vi.waitFor(async () => expect((await env.state(ref)).cyclesCharged).toBe(2), SOON);
  expect((await handle.describe()).runId).not.toBe(stuck.runId);
  expect(await handle.query(stateQuery)).toEqual(await env.state(ref));

  expect(await impatient.replaceIfStuck(ref)).toBe(false);
  expect(await repairsOf(env)).toEqual({});
  expect((await env.book(ref)).map((charge) => charge.outcome)).toEqual(['succeeded', 'succeeded']);
});
