import { expect } from 'vitest';
import { countEarlier } from '../../db/repositories/subscriptions/transitions.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServer as test } from '../support/environment.ts';
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
  const counted = [...rows.slice(0, 2), fiftieth, next].map((ref) =>
    countEarlier(env.db, ref, 5_000),
  );
  expect(await Promise.all(counted)).toEqual([0, 1, 49, 50]);
  expect(await countEarlier(env.db, next, 20)).toBe(20);
  expect(await countEarlier(env.db, { ...next, merchantId: 'mer_another' }, 20)).toBe(0);
});
