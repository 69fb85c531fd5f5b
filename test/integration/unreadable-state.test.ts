import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, vi } from 'vitest';
import { NOTHING_FOUND } from '../../activities/repair/sweep.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { recheck, subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { onDevServer as test } from '../support/environment.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import { detailsOf } from '../support/workflow-details.ts';

const REASON = 'terms.interval must be one of DAY, WEEK, MONTH, YEAR';

const handleOf = ({ client }: TestEnvironment, { subscriptionId }: SubscriptionRef) =>
  client.workflow.getHandle(subscriptionWorkflowId(subscriptionId));

async function active(env: TestEnvironment): Promise<SubscriptionRef> {
  const ref = await env.create({ createdAt: Date.now() });
  await payCheckout(env, ref);
  return ref;
}

const setInterval = (
  { db }: TestEnvironment,
  { subscriptionId }: SubscriptionRef,
  value: unknown,
) =>
  db.execute(sql`update subscription
    set state = jsonb_set(state::jsonb, '{terms,interval}', ${sql.param(value)}::jsonb) where id = ${subscriptionId}`);

const pause = (env: TestEnvironment, ref: SubscriptionRef) =>
  env.workflows.execute(ref, { kind: 'pause', commandId: randomUUID() });

const sweep = (env: TestEnvironment) =>
  env.activities.sweep({ nowAt: Date.now(), lookBackMs: 60_000 });

const DONE = { kind: 'result', result: { kind: 'done' } };

test('a subscription whose recorded state cannot be read executes nothing until the state is repaired [D-32]', async ({
  env,
}) => {
  const ref = await active(env);
  const { subscriptionId } = ref;
  const before = await env.state(ref);
  await setInterval(env, ref, ['MONTH']);
  await expect(env.state(ref)).rejects.toThrow(
    `the recorded state of ${subscriptionId} cannot be read: ${REASON}`,
  );

  await handleOf(env, ref).signal(recheck);
  await expect
    .poll(() => detailsOf(handleOf(env, ref)))
    .toMatch(
      `**Held**: the recorded state of ${subscriptionId} cannot be read: ${REASON}. ` +
        'Repair the row, then send the signal `recheck`.',
    );
  await expect(pause(env, ref)).rejects.toMatchObject({ code: 'service_unavailable' });
  const { events } = await handleOf(env, ref).fetchHistory();
  expect(events?.filter((event) => event.workflowTaskFailedEventAttributes)).toEqual([]);
  const waits = events?.flatMap((event) => event.timerStartedEventAttributes ?? []);
  expect(Number(waits?.at(-1)?.startToFireTimeout?.seconds)).toBeGreaterThan(3_500);

  // The sweep finds the subscription overdue and does not change the waiting run.
  await env.db.execute(sql`update subscription set wake_at = now() - interval '10 minutes',
    updated_at = now() - interval '10 minutes' where id = ${subscriptionId}`);
  const warned = vi.spyOn(env.logger, 'warn');
  expect(await sweep(env)).toEqual({ ...NOTHING_FOUND, failed: 1 });
  expect(warned.mock.lastCall).toEqual([
    {
      kind: 'overdue',
      case: expect.objectContaining(ref),
      reason: `the recorded state of ${subscriptionId} cannot be read: ${REASON}`,
    },
    'a case could not be repaired',
  ]);
  warned.mockRestore();
  expect((await handleOf(env, ref).fetchHistory()).events).toHaveLength(events?.length ?? 0);

  await setInterval(env, ref, 'MONTH');
  await handleOf(env, ref).signal(recheck);
  await expect.poll(() => detailsOf(handleOf(env, ref))).not.toContain('Held');
  expect(await env.state(ref)).toEqual(before);
  expect(await env.execute(ref, { kind: 'pause', commandId: randomUUID() })).toEqual(DONE);
  expect((await env.state(ref)).status).toBe('PAUSED');
  expect(await env.book(ref)).toHaveLength(1);
});

test('no run is started from a recorded state that cannot be read until the state is repaired [D-32]', async ({
  env,
}) => {
  const ref = await active(env);
  await setInterval(env, ref, ['MONTH']);
  await handleOf(env, ref).terminate('terminated by an operator');
  const { runId } = await handleOf(env, ref).describe();
  await expect(env.workflows.ensureRunning(ref)).rejects.toThrow(REASON);
  await expect(env.workflows.replaceIfStuck(ref)).rejects.toThrow(REASON);
  await expect(pause(env, ref)).rejects.toThrow(REASON);
  expect((await handleOf(env, ref).describe()).runId).toBe(runId);

  await setInterval(env, ref, 'MONTH');
  expect(await env.workflows.ensureRunning(ref)).toBe(true);
  expect(await env.execute(ref, { kind: 'pause', commandId: randomUUID() })).toEqual(DONE);
  expect((await env.state(ref)).status).toBe('PAUSED');
});
