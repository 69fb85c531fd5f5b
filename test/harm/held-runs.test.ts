import { eq, sql } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { recordDispute } from '../../db/repositories/payments/disputes.ts';
import { paymentAttempts } from '../../db/schema/payments.ts';
import { subscriptions, testClocks } from '../../db/schema/subscriptions.ts';
import { describeWorkflow } from '../../temporal/client.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { command } from '../support/command.ts';
import { findings } from '../support/findings.ts';
import { onDevServer as test } from '../support/environment.ts';
import { CREATED_AT, DUE_AT, februaryLost, paidForJanuary } from '../support/february-charge.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { runCommand } from '../support/run-command.ts';
import { explainCommand } from '../../cli/explain/command.ts';
import { repairsOf } from '../support/repairs.ts';
import { dumpRows } from '../support/restored-rows.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import { detailsOf } from '../support/workflow-details.ts';

/** The rows are restored from a backup. The sweep finds the runs that are newer than their rows. */

const HELD = '**Held**: the database is older than this run.';
const DAY_MS = 86_400_000;
const longAgo = sql`now() - interval '10 minutes'`;

const handleOf = ({ client }: TestEnvironment, { subscriptionId }: SubscriptionRef) =>
  client.workflow.getHandle(subscriptionWorkflowId(subscriptionId));

const change = ({ db }: TestEnvironment, { subscriptionId }: SubscriptionRef, set: object) =>
  db.update(subscriptions).set(set).where(eq(subscriptions.id, subscriptionId));

const healthOf = async ({ url }: { url: string }): Promise<unknown> =>
  (await fetch(`${url}/health`)).json();

const lengthOf = async (env: TestEnvironment, ref: SubscriptionRef) =>
  (await handleOf(env, ref).fetchHistory()).events?.length;

/** Expects that the run is held, and that two more sweeps do not repair it, fail on it or send it a message. */
async function expectLeftAlone(env: TestEnvironment, ref: SubscriptionRef): Promise<void> {
  await expect.poll(() => detailsOf(handleOf(env, ref))).toContain(HELD);
  const before = await lengthOf(env, ref);
  expect([await repairsOf(env), await repairsOf(env)]).toEqual([{}, {}]);
  expect(await lengthOf(env, ref)).toBe(before);
}

describe('a run that is newer than its restored row', () => {
  test('is rechecked once by the sweep, is counted by /health and starts from its row after its termination [D-39]', async ({
    env,
    shop,
  }) => {
    const ref = await env.create({ createdAt: Date.now() });
    const restore = await dumpRows(env.db);
    await payCheckout(env, ref);
    await restore();
    await change(env, ref, { wakeAt: longAgo, updatedAt: longAgo });
    await expect.poll(() => repairsOf(env)).toEqual({ overdue: 1 });
    await expectLeftAlone(env, ref);
    expect(await healthOf(shop)).toEqual({
      status: 'ok',
      heldSubscriptions: 1,
      blockedAccounts: 0,
    });
    expect((await findings(env)).forPerson).toEqual([
      expect.stringMatching(
        `^${ref.subscriptionId} is held since .*: the database is older than its workflow$`,
      ),
    ]);

    const variables = { DATABASE_URL: env.databaseUrl };
    const { stdout } = await runCommand(explainCommand, variables, [ref.subscriptionId]);
    expect(stdout).toMatch(/^Held: the database is older than its run, since /m);
    expect(stdout).toContain('Next: nothing until an operator releases it.');

    await handleOf(env, ref).terminate('the database was restored');
    await change(env, ref, { wakeAt: sql`now() + interval '1 hour'` });
    expect(await repairsOf(env)).toEqual({ lost: 1 });
    expect(await healthOf(shop)).toEqual({
      status: 'ok',
      heldSubscriptions: 0,
      blockedAccounts: 0,
    });
    expect(await repairsOf(env)).toEqual({});
    expect(await env.book(ref)).toHaveLength(1);
  });

  test('is found on a test clock whose target the run had reached before [D-39, D-60]', async ({
    env,
    shop,
  }) => {
    const { ref, clock, february } = await februaryLost(env);
    await env.sendClock(clock, DUE_AT);
    await env.db.update(testClocks).set({ sentAt: longAgo }).where(eq(testClocks.id, clock));
    await change(env, ref, { updatedAt: longAgo });
    expect(await repairsOf(env)).toEqual({ behindTheirClock: 1 });
    await expectLeftAlone(env, ref);
    expect(await healthOf(shop)).toEqual({
      status: 'ok',
      heldSubscriptions: 1,
      blockedAccounts: 0,
    });
    expect(await february()).toEqual(['succeeded 1999 x1']);
    // A note would raise the row's version to that of the run, which would then go on from the restored row.
    const { version } = await env.state(ref);
    const [attempt] = await env.db.select().from(paymentAttempts);
    const dispute = {
      gatewayChargeId: 'ch_1',
      amountMinor: 1_999,
      currency: 'USD',
      reason: 'fraudulent',
      status: 'OPEN',
      openedAt: CREATED_AT,
    } as const;
    await expect(recordDispute(env.db, attempt!, 'dp_1', dispute, CREATED_AT)).rejects.toThrow(
      `${ref.subscriptionId} is held`,
    );
    expect((await env.state(ref)).version).toBe(version);

    await handleOf(env, ref).terminate('the database was restored');
    expect(await repairsOf(env)).toEqual({ lost: 1 });
    await env.advance(clock, DUE_AT);
    expect(await february()).toEqual(['succeeded 1999 x2']);
    expect(await healthOf(shop)).toEqual({
      status: 'ok',
      heldSubscriptions: 0,
      blockedAccounts: 0,
    });
  });

  test('tells its row again which time its test clock has reached when only this was lost [D-39, D-60]', async ({
    env,
  }) => {
    const { ref, clock, february } = await paidForJanuary(env);
    const restore = await dumpRows(env.db);
    await env.advance(clock, CREATED_AT + 10 * DAY_MS);
    await restore();
    await env.sendClock(clock, CREATED_AT + 5 * DAY_MS);
    await env.db.update(testClocks).set({ sentAt: longAgo }).where(eq(testClocks.id, clock));
    await change(env, ref, { updatedAt: longAgo });
    expect(await repairsOf(env)).toEqual({ behindTheirClock: 1 });
    const reachedAt = async () => {
      const [row] = await env.db
        .select({ at: subscriptions.clockReachedAt })
        .from(subscriptions)
        .where(eq(subscriptions.id, ref.subscriptionId));
      return row?.at;
    };
    await expect.poll(reachedAt).toBe(CREATED_AT + 10 * DAY_MS);
    expect(await repairsOf(env)).toEqual({});
    await env.advance(clock, DUE_AT);
    expect(await february()).toEqual(['succeeded 1999 x1']);
  });

  test('is counted, and neither started nor counted as failed, if it has completed, also after Temporal has deleted it [D-39]', async ({
    env,
    shop,
  }) => {
    const ref = await env.create({ createdAt: Date.now() });
    await payCheckout(env, ref);
    const restore = await dumpRows(env.db);
    await env.execute(ref, command('cancel', { reason: 'cancelled' }));
    await handleOf(env, ref).result();
    await restore();
    await change(env, ref, { wakeAt: longAgo, updatedAt: longAgo });
    expect(await repairsOf(env)).toEqual({ failed: 1 });
    expect([await repairsOf(env), await repairsOf(env)]).toEqual([{}, {}]);
    expect(await healthOf(shop)).toEqual({
      status: 'ok',
      heldSubscriptions: 1,
      blockedAccounts: 0,
    });

    const { client } = env;
    await client.workflowService.deleteWorkflowExecution({
      namespace: client.options.namespace,
      workflowExecution: { workflowId: subscriptionWorkflowId(ref.subscriptionId) },
    });
    await expect.poll(() => describeWorkflow(client, handleOf(env, ref).workflowId)).toBeNull();
    await change(env, ref, { wakeAt: longAgo, updatedAt: longAgo });
    expect([await repairsOf(env), await repairsOf(env)]).toEqual([{}, {}]);
    const cancel = command('cancel', { reason: 'cancelled' });
    await expect(env.workflows.execute(ref, cancel)).rejects.toMatchObject({
      code: 'service_unavailable',
    });
    expect(await healthOf(shop)).toEqual({
      status: 'ok',
      heldSubscriptions: 1,
      blockedAccounts: 0,
    });
    expect(await env.book(ref)).toHaveLength(1);
  });
});
