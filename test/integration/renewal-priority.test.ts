import { eq, sql } from 'drizzle-orm';
import { expect } from 'vitest';
import { countEarlier } from '../../db/repositories/subscriptions/row.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServer as test } from '../support/environment.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { insertSubscription } from '../support/subscriptions.ts';
import { createEnvironment } from '../support/test-environment.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

const CREATED_AT = Date.parse('2027-01-01T00:00:00Z');

async function priorityOf(env: TestEnvironment, subscriptionId: string) {
  const { workflowExecutionInfo } = await env.client.workflowService.describeWorkflowExecution({
    namespace: 'default',
    execution: { workflowId: subscriptionWorkflowId(subscriptionId) },
  });
  const { priorityKey, fairnessKey } = workflowExecutionInfo?.priority ?? {};
  return { priorityKey, fairnessKey };
}

/** Pays the checkout, and starts a new run from the row. */
async function paidOnNewRun(env: TestEnvironment, ref: SubscriptionRef) {
  await payCheckout(env, ref);
  const workflow = env.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
  await workflow.terminate('a test');
  expect(await env.workflows.ensureRunning(ref)).toBe(true);
}

test('a run for which a payer waits has priority key 1; paid, a merchant’s first 50 have 2, the next 3', async ({
  env,
}) => {
  const rows = [];
  for (let index = 0; index < 49; index += 1) {
    rows.push(await env.createRowOnly({ createdAt: CREATED_AT + index }));
  }
  const fiftieth = await env.create({ createdAt: CREATED_AT + 49 });
  const next = await env.create({ createdAt: CREATED_AT + 50 });
  const { merchantId: fairnessKey } = env;
  expect(await priorityOf(env, fiftieth.subscriptionId)).toEqual({ priorityKey: 1, fairnessKey });
  expect(await priorityOf(env, next.subscriptionId)).toEqual({ priorityKey: 1, fairnessKey });
  await paidOnNewRun(env, fiftieth);
  await paidOnNewRun(env, next);
  expect(await priorityOf(env, fiftieth.subscriptionId)).toEqual({ priorityKey: 2, fairnessKey });
  expect(await priorityOf(env, next.subscriptionId)).toEqual({ priorityKey: 3, fairnessKey });
  const counted = async ({ subscriptionId }: { subscriptionId: string }, most: number) => {
    const [row] = await env.db
      .select({ earlier: countEarlier(most) })
      .from(subscriptions)
      .where(eq(subscriptions.id, subscriptionId));
    return row?.earlier;
  };
  const all = [...rows.slice(0, 2), fiftieth, next].map((ref) => counted(ref, 5_000));
  expect(await Promise.all(all)).toEqual([0, 1, 49, 50]);
  expect(await counted(next, 20)).toBe(20);
  await env.db.execute(sql`insert into merchant (id, name, mode, settings, created_at)
    select 'mer_another', name, mode, settings, created_at from merchant limit 1`);
  const ofAnother = await insertSubscription(env.db, 'mer_another', { createdAt: CREATED_AT + 60 });
  expect(await counted(ofAnother, 20)).toBe(0);
});

const watched = test.extend('watched', async ({ server }, { onCleanup }) => {
  const ended: string[] = [];
  const env = await createEnvironment(server, {
    onPayerPriorityEnd: ({ subscriptionId }) => ended.push(subscriptionId),
  });
  onCleanup(() => env.close());
  return { env, ended };
});

watched(
  'the priority of a payer ends with the first payment or the saved card, once',
  async ({ watched: { env, ended } }) => {
    const createdAt = CREATED_AT;
    const clock = await env.createClock(createdAt);
    const plain = await env.create({ createdAt, testClockId: clock, terms: { cycleCount: 3 } });
    await payCheckout(env, plain, await env.token('4000000000000002'));
    expect(ended).toEqual([]);
    await payCheckout(env, plain);
    expect(ended).toEqual([plain.subscriptionId]);
    const trial = { interval: 'DAY', count: 7 } as const;
    const tried = await env.create({
      createdAt,
      testClockId: clock,
      terms: { cycleCount: 2, trial },
    });
    await payCheckout(env, tried);
    expect(ended).toEqual([plain.subscriptionId, tried.subscriptionId]);
    await env.advance(clock, '2027-04-02T00:00:00Z');
    expect((await env.state(plain)).status).toBe('ENDED');
    expect((await env.state(tried)).status).toBe('ENDED');
    expect(ended).toHaveLength(2);
  },
);
