import { eq, sql } from 'drizzle-orm';
import { expect } from 'vitest';
import { countEarlier } from '../../db/repositories/subscriptions/transitions.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServer as test } from '../support/environment.ts';
import { insertSubscription } from '../support/subscriptions.ts';
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

test('a merchant’s first 50 subscriptions run with priority key 1, the next subscriptions with 2', async ({
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
  expect(await priorityOf(env, next.subscriptionId)).toEqual({ priorityKey: 2, fairnessKey });
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
