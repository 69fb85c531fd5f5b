import { inArray, sql } from 'drizzle-orm';
import { expect } from 'vitest';
import { takeOverdue } from '../../db/repositories/sweeps/queries.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { onDevServer as test } from '../support/environment.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

async function change(env: TestEnvironment, refs: SubscriptionRef[], set: object): Promise<void> {
  const ids = refs.map(({ subscriptionId }) => subscriptionId);
  await env.db.update(subscriptions).set(set).where(inArray(subscriptions.id, ids));
}

const minutesAgo = (minutes: number) => sql`now() - make_interval(mins => ${minutes})`;

test('sweeps take every overdue subscription once before they take any subscription again', async ({
  env,
}) => {
  const refs: SubscriptionRef[] = [];
  for (let row = 0; row < 7; row += 1) {
    refs.push(await env.createRowOnly({ createdAt: Date.now() }));
    const at = minutesAgo(60 - row);
    await change(env, refs.slice(-1), { wakeAt: at, updatedAt: at, workflowStartedAt: at });
  }
  const take = async () =>
    (await takeOverdue(env.db, 3)).map((ref) =>
      refs.findIndex(({ subscriptionId }) => subscriptionId === ref.subscriptionId),
    );
  const sorted = async () => (await take()).toSorted((a, b) => a - b);
  expect(await sorted()).toEqual([0, 1, 2]);
  expect(await sorted()).toEqual([3, 4, 5]);
  expect(await take()).toContain(6);
  // A subscription that becomes overdue comes before subscriptions that stay overdue.
  const fresh = await env.createRowOnly({ createdAt: Date.now() });
  const at = minutesAgo(2);
  await change(env, [fresh], { wakeAt: at, updatedAt: at, workflowStartedAt: at });
  const next = await takeOverdue(env.db, 3);
  expect(next.map(({ subscriptionId }) => subscriptionId)).toContain(fresh.subscriptionId);
  expect(next).toHaveLength(3);
});

test('an overdue subscription is repaired also when more subscriptions than a sweep’s limit stay overdue', async ({
  env,
}) => {
  const ref = await env.create({ createdAt: Date.now() });
  await payCheckout(env, ref);
  await env.client.workflow.getHandle(`subscription/${ref.subscriptionId}`).terminate('lost');
  const state = await env.state(ref);
  const anchorAt = Number(state.anchorAt) - 40 * DAY;
  await change(env, [ref], {
    state: { ...state, anchorAt },
    wakeAt: minutesAgo(10),
    updatedAt: minutesAgo(10),
  });
  // These 210 subscriptions are overdue for longer, and their rows never change.
  await env.db.execute(sql`
    insert into subscription
    select (jsonb_populate_record(s, jsonb_build_object(
      'id', 'sub_stuck' || lpad(n::text, 17, '0'),
      'status', 'ENDED',
      'state', jsonb_set(jsonb_set(s.state::jsonb, '{subscriptionId}', to_jsonb('sub_stuck' || lpad(n::text, 17, '0'))), '{status}', '"ENDED"'),
      'wake_at', now() - interval '1 day'))).*
    from subscription s, generate_series(1, 210) n where s.id = ${ref.subscriptionId}`);
  await env.activities.sweep({ nowAt: Date.now(), lookBackMs: 0 });
  expect((await env.state(ref)).cyclesCharged).toBe(1);
  await env.activities.sweep({ nowAt: Date.now(), lookBackMs: 0 });
  await expect.poll(async () => (await env.state(ref)).cyclesCharged).toBe(2);
  expect(await env.book(ref)).toHaveLength(2);
});
