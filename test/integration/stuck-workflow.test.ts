import type { WorkflowHandle, WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import proto from '@temporalio/proto';
import { eq, sql } from 'drizzle-orm';
import { describe, expect, vi } from 'vitest';
import { followUp } from '../../activities/repair/decided-reviews.ts';
import { orderRows } from '../../db/repositories/payments/charges.ts';
import { settleRefund } from '../../db/repositories/payments/refunds.ts';
import { decideReview } from '../../db/repositories/payments/reviews.ts';
import { subscriptionRows } from '../../db/repositories/subscriptions/row.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import type { SubscriptionRef, SubscriptionState } from '../../domain/subscription/state.ts';
import { createLogger } from '../../runtime/logger.ts';
import { createOrders } from '../../temporal/orders.ts';
import { createSubscriptionWorkflows } from '../../temporal/subscriptions/workflows.ts';
import { orderWorkflowId } from '../../workflows/orders/messages.ts';
import {
  SUBSCRIPTION_WORKFLOW,
  stateQuery,
  subscriptionWorkflowId,
} from '../../workflows/subscription/messages.ts';
import { onDevServer as test } from '../support/environment.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { repairsOf } from '../support/repairs.ts';
import { executeUntilAccepted } from '../support/test-environment.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

const { PENDING_WORKFLOW_TASK_STATE_STARTED: STARTED } =
  proto.temporal.api.enums.v1.PendingWorkflowTaskState;

const DAY = 24 * 3_600_000;
const SOON = { timeout: 60_000, interval: 100 };

/** More attempts than a test lasts. */
const ATTEMPTS_LOST = 20;

/** The subscription workflows of an API that replaces a stuck run at its first failed workflow task. */
const impatientIn = ({ client, db, taskQueuePrefix, logger }: TestEnvironment) =>
  createSubscriptionWorkflows({
    client,
    rows: subscriptionRows(db),
    taskQueuePrefix,
    logger,
    stuckAfterMs: 0,
  });

const runOf = ({ client }: TestEnvironment, { subscriptionId }: SubscriptionRef) =>
  client.workflow.getHandle(subscriptionWorkflowId(subscriptionId));

/**
 * Replaces the run of the subscription with one whose workflow tasks all fail, because its state has no terms. Waits
 * until `failures` tasks have failed.
 */
async function makeStuck(
  env: TestEnvironment,
  ref: SubscriptionRef,
  state: SubscriptionState,
  failures: number,
): Promise<void> {
  const handle = runOf(env, ref);
  await handle.terminate('replaced by a run that fails');
  await env.client.workflow.start(SUBSCRIPTION_WORKFLOW, {
    workflowId: handle.workflowId,
    taskQueue: `${env.taskQueuePrefix}billing`,
    args: [{ state: { ...state, terms: null }, clock: null, deliver: false, needsResync: false }],
  });
  await vi.waitFor(async () => {
    expect(await startedAttempt(handle)).toBeGreaterThan(failures);
  }, SOON);
}

/** The attempt of the run's workflow task that a worker has; 0 if none has it. */
async function startedAttempt(handle: WorkflowHandle): Promise<number> {
  const { pendingWorkflowTask: task } = (await handle.describe()).raw;
  return task?.state === STARTED ? Number(task.attempt) : 0;
}

/**
 * Replaces the run of the subscription with one whose workflow tasks a worker takes and never completes, as if it was
 * killed each time. Waits until it has the third attempt.
 */
async function makeTimeOut(
  env: TestEnvironment,
  ref: SubscriptionRef,
  isOver: AbortSignal,
): Promise<void> {
  const { client } = env;
  const handle = runOf(env, ref);
  const state = await env.state(ref);
  await handle.terminate('replaced by a run whose tasks time out');
  const taskQueue = `${env.taskQueuePrefix}killed-worker`;
  await client.workflow.start(SUBSCRIPTION_WORKFLOW, {
    workflowId: handle.workflowId,
    taskQueue,
    workflowTaskTimeout: '1s',
    args: [{ state, clock: null, deliver: false, needsResync: false }],
  });
  const { namespace } = client.options;
  const request = { namespace, taskQueue: { name: taskQueue } };
  for (let poll = 0; poll < ATTEMPTS_LOST; poll += 1) {
    const take = () => client.workflowService.pollWorkflowTaskQueue(request);
    client
      .withAbortSignal(isOver, () => client.withDeadline(Date.now() + 60_000, take))
      .catch(() => undefined); // the test is over
  }
  await vi.waitFor(async () => expect(await startedAttempt(handle)).toBeGreaterThan(2), SOON);
}

test('a subscription whose workflow tasks keep failing continues from its row and is charged once [D-40]', async ({
  env,
}) => {
  const ref = await env.create({ createdAt: Date.now() });
  await payCheckout(env, ref);
  const handle = runOf(env, ref);
  const impatient = impatientIn(env);
  expect(await impatient.replaceIfStuck(ref)).toBe(false);

  // The cycle is due.
  const state = await env.state(ref);
  const dueState = { ...state, anchorAt: Number(state.anchorAt) - 40 * DAY };
  const longAgo = sql`now() - interval '10 minutes'`;
  await env.db
    .update(subscriptions)
    .set({ state: dueState, wakeAt: longAgo, updatedAt: longAgo })
    .where(eq(subscriptions.id, ref.subscriptionId));
  await makeStuck(env, ref, dueState, 1);
  const stuck = await handle.describe();

  const isLate = async () => true;
  expect(await env.workflows.recheckUnlessBusy(ref, isLate)).toBe(false);
  expect((await handle.describe()).runId).toBe(stuck.runId);
  expect(await impatient.recheckUnlessBusy(ref, isLate)).toBe(true);
  await vi.waitFor(async () => expect((await env.state(ref)).cyclesCharged).toBe(2), SOON);
  expect((await handle.describe()).runId).not.toBe(stuck.runId);
  expect(await handle.query(stateQuery)).toMatchObject(await env.state(ref));

  expect(await impatient.replaceIfStuck(ref)).toBe(false);
  expect(await repairsOf(env)).toEqual({});
  expect((await env.book(ref)).map((charge) => charge.outcome)).toEqual(['succeeded', 'succeeded']);
});

test.concurrent.for([
  ['keep failing', async (env, ref) => makeStuck(env, ref, await env.state(ref), 2)],
  ['go to workers that die', makeTimeOut],
] satisfies [string, typeof makeTimeOut][])(
  'a command executes on a new run from the row, once, if the workflow tasks of the run %s and nothing is due [D-16, D-40]',
  async ([, spoil], { env, onTestFinished }) => {
    const ref = await env.create({ createdAt: Date.now() });
    await payCheckout(env, ref);
    const over = new AbortController();
    onTestFinished(() => over.abort());
    await spoil(env, ref, over.signal);
    const stuck = await runOf(env, ref).describe();
    const edit = { kind: 'edit', commandId: 'cmd_edit', newAmountMinor: 2_500 } as const;

    // The tasks have not failed for a minute yet.
    await expect(env.workflows.execute(ref, edit)).rejects.toMatchObject({
      code: 'service_unavailable',
    });
    expect((await runOf(env, ref).describe()).runId).toBe(stuck.runId);

    const done = { kind: 'result', result: { kind: 'done' } };
    expect(await executeUntilAccepted(impatientIn(env), ref, edit)).toEqual(done);
    const edited = await env.state(ref);
    expect(edited.terms.amountMinor).toBe(2_500);
    expect((await runOf(env, ref).describe()).runId).not.toBe(stuck.runId);
    expect(await env.execute(ref, edit)).toEqual(done);
    expect(await env.state(ref)).toEqual(edited);
    expect((await env.book(ref)).map(({ outcome }) => outcome)).toEqual(['succeeded']);
  },
);

describe('a one-off order whose workflow tasks keep failing', () => {
  /** The payment workflows of an API or a sweep that replaces a stuck run at its first failed workflow task. */
  function impatientOrdersIn({ client, db, taskQueuePrefix }: TestEnvironment) {
    const logged: object[] = [];
    const write = (line: string) => void logged.push(pick(JSON.parse(line)));
    const logger = createLogger({ name: 'test' }, { write });
    const rows = orderRows(db);
    const orders = createOrders({
      client,
      rows,
      taskQueuePrefix,
      logger,
      stuckAfterMs: 0,
    });
    return { orders, logged };
  }

  const pick = ({ level, workflowId, runId, msg }: Record<string, unknown>) => ({
    level,
    workflowId,
    runId,
    msg,
  });

  const replacementOf = ({
    workflowId,
    firstExecutionRunId,
  }: WorkflowHandleWithFirstExecutionRunId) => ({
    level: 'error',
    workflowId,
    runId: firstExecutionRunId,
    msg: 'workflow tasks kept failing; the run was terminated',
  });

  /** Starts a run whose workflow tasks all fail, because it has no argument. Waits until a task has failed. */
  async function startStuck(env: TestEnvironment, type: string, workflowId: string) {
    const taskQueue = `${env.taskQueuePrefix}billing`;
    const handle = await env.client.workflow.start(type, { workflowId, taskQueue, args: [null] });
    await vi.waitFor(async () => expect(await startedAttempt(handle)).toBeGreaterThan(1), SOON);
    return handle;
  }

  test('is charged once on a new run, which a sweep starts from the rows [D-36, D-40]', async ({
    env,
    payments,
  }) => {
    const ref = await payments.tokenised();
    const stuck = await startStuck(env, 'payment', orderWorkflowId('payment', ref.intentId));
    const impatient = impatientOrdersIn(env);
    expect(await env.orders.ensureRunning('payment', { ...ref, token: null })).toBe(false);
    expect(await payments.book(ref)).toEqual([]);

    expect(await impatient.orders.ensureRunning('payment', { ...ref, token: null })).toBe(true);
    expect(impatient.logged).toEqual([replacementOf(stuck)]);
    const told = ['intent.created CREATED', 'intent.success SUCCESS'];
    await vi.waitFor(async () => expect(await payments.story(ref.intentId)).toEqual(told), SOON);
    expect(await repairsOf(env)).toEqual({});
    expect(await env.orders.execute('payment', { ...ref, token: null })).toMatchObject({
      kind: 'succeeded',
    });
    expect(await payments.book(ref)).toEqual(['succeeded 5000 x1']);
    expect(await payments.story(ref.intentId)).toEqual(told);
  });

  test('is refunded once on a new run, when the merchant repeats the call [D-36, D-40]', async ({
    env,
    payments,
  }) => {
    const paid = await payments.paid();
    const { ref } = await payments.refund(paid, 1_200);
    const stuck = await startStuck(env, 'refund', orderWorkflowId('refund', ref.refundId));

    const impatient = impatientOrdersIn(env);
    expect(await impatient.orders.execute('refund', ref)).toEqual({ kind: 'refunded' });
    expect(impatient.logged).toEqual([replacementOf(stuck)]);
    expect(await env.orders.execute('refund', ref)).toEqual({ kind: 'refunded' });
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 1200']);
    expect(await payments.story(paid.intentId)).toEqual([
      'intent.created CREATED',
      'intent.success SUCCESS',
      'intent.refunded PARTIALLY_REFUNDED',
    ]);
  });

  test('books the decided review of its refund on a new run, which a sweep starts [D-36, D-40]', async ({
    env,
    payments,
  }) => {
    const paid = await payments.paid();
    const { ref } = await payments.refund(paid, 1_200);
    const lost = { kind: 'review', reason: 'the gateway has lost the refund' } as const;
    await settleRefund(env.db, await payments.refundRow(ref), lost, Date.now());
    const stuck = await startStuck(env, 'refund', orderWorkflowId('refund', ref.refundId));
    const by = { gatewayId: null, code: null, by: 'Ada', note: '' };
    const decided = await decideReview(env.db, ref.refundId, { ...by, outcome: 'not_refunded' });
    if (!decided.ok) throw new Error(decided.message);
    const { orders, logged } = impatientOrdersIn(env);
    await followUp(decided.review, env.workflows, orders);
    expect(logged).toEqual([replacementOf(stuck)]);
    await vi.waitFor(
      async () => expect(await payments.refundRow(ref)).toMatchObject({ state: 'REFUSED' }),
      SOON,
    );
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1']);
  });
});
