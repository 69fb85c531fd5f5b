import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import type { SubscriptionState } from '../../domain/subscription/state.ts';
import { payOnPage } from '../../tools/scripts/client/payer.ts';
import { onDevServer } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { verify } from '../support/verify-command.ts';
import { openWorkerScenario } from '../support/worker-scenario.ts';
import type { WorkerScenario } from '../support/worker-scenario.ts';

/**
 * A worker process is killed after it has committed the opening of an attempt, and another one continues. The
 * subscriptions live in real time, because a test clock shows every repeat the same instant.
 */

const test = onDevServer.extend('scenario', async ({ server }, { onCleanup }) => {
  const scenario = await openWorkerScenario(server, { isWhole: true });
  onCleanup(() => scenario.close());
  return scenario;
});

/** A limit for tests that fail. */
const LIMIT = { timeout: 300_000 };
const KILLED = { code: null, signal: 'SIGKILL' };
const HOUR_MS = 3_600_000;
/** The time from an edit to the charge, in ms: long enough to change the worker. */
const SOON_MS = 3_000;

const EDIT = '/subscription/edit';
const RETRY = '/subscription/manual-retry';

/** A subscription of two cycles whose first cycle is paid. No worker runs. */
async function paidOnce({ shop, startWorker }: WorkerScenario) {
  const stopWorker = await startWorker();
  const subscription = await shop.subscribe({ cycleCount: 2 });
  await payOnPage(subscription.fwdUrl);
  await shop.expectAllDelivered(subscription.subscriptionId);
  return { ...subscription, stopWorker };
}

const soon = (subscriptionId: string) => ({
  subscriptionId,
  newNextPaymentDate: Date.now() + SOON_MS,
});

async function attempts({ env }: WorkerScenario) {
  const rows = await env.db.execute<{ line: string }>(sql`
    select i.cycle_number || '.' || a.attempt_number || ' ' || a.trigger || ' ' || a.state as line
    from payment_attempt a
      join payment_intent i on i.merchant_id = a.merchant_id and i.id = a.intent_id
    order by i.cycle_number, a.attempt_number`);
  return rows.map(({ line }) => line);
}

/** The start of the latest attempt, from its row, in epoch ms. */
async function latestStart({ env }: WorkerScenario): Promise<number> {
  const [row] = await env.db.execute<{ at: string }>(sql`
    select (extract(epoch from created_at) * 1000)::bigint as at
    from payment_attempt order by created_at desc limit 1`);
  return Number(row?.at);
}

const rowOf = ({ env, merchantId }: WorkerScenario, subscriptionId: string) =>
  env.state({ merchantId, subscriptionId });

describe.concurrent('a worker that is killed after the opening of an attempt', LIMIT, () => {
  test('leaves one charge and a true answer when a manual retry comes before the repeat of an automatic one [D-31, D-32]', async ({
    scenario,
  }) => {
    const { shop, env } = scenario;
    const { subscriptionId, stopWorker, declineNext, book } = await paidOnce(scenario);
    await declineNext('card_declined', 1);
    await shop.merchant.post(EDIT, soon(subscriptionId));
    await eventually(async () =>
      expect(await rowOf(scenario, subscriptionId)).toMatchObject({ status: 'UNPAID' }),
    );
    await shop.merchant.post(EDIT, soon(subscriptionId));
    await stopWorker();
    const crashing = await scenario.startMortal('after_opening');
    expect(await crashing.gone).toMatchObject(KILLED);
    const opened = ['1.1 checkout SUCCEEDED', '2.1 scheduled DECLINED'];
    expect(await attempts(scenario)).toEqual([...opened, '2.2 automatic_retry SENDING']);

    await scenario.statementsEnded();
    // The manual retry waits at Temporal, so the next worker takes it before the due retry.
    const answer = shop.impatientMerchant
      .post(RETRY, { subscriptionId }, randomUUID())
      .then((body) => body, String);
    await scenario.goOn();
    // 400: the outcome of the automatic retry is pending. 503: the worker has started too late.
    expect(await answer).toMatch(/400 payment_outcome_pending|status (400|503)$/);
    await eventually(async () =>
      expect(await rowOf(scenario, subscriptionId)).toMatchObject({
        status: 'ENDED',
        endReason: 'completed',
      }),
    );
    expect(await attempts(scenario)).toEqual([...opened, '2.2 automatic_retry SUCCEEDED']);
    expect(await book()).toEqual(['succeeded 1999', 'declined 1999', 'succeeded 1999']);
    await shop.expectAllDelivered(subscriptionId);
    expect(await verify(env)).toMatchObject({ code: 0 });
  });

  test.for([
    ['a due date', '2.1 scheduled'],
    ['a manual retry', '2.2 manual_retry'],
  ] as const)(
    'leaves the start of the attempt as it was, seconds later, when %s opened it [D-30, D-31]',
    async ([cause, name], { scenario }) => {
      const { shop, env } = scenario;
      const { subscriptionId, stopWorker, declineNext } = await paidOnce(scenario);
      const isManual = cause === 'a manual retry';
      await declineNext('card_declined', isManual ? 2 : 1);
      await shop.merchant.post(EDIT, soon(subscriptionId));
      if (isManual) {
        await eventually(async () =>
          expect(await rowOf(scenario, subscriptionId)).toMatchObject({ status: 'UNPAID' }),
        );
      }
      await stopWorker();
      const crashing = await scenario.startMortal('after_opening');
      const key = randomUUID();
      const first = isManual
        ? shop.merchant.post(RETRY, { subscriptionId }, key).catch(() => undefined)
        : undefined;
      expect(await crashing.gone).toMatchObject(KILLED);
      expect((await attempts(scenario)).at(-1)).toBe(`${name} SENDING`);
      const startedAt = await latestStart(scenario);
      const planned = (await rowOf(scenario, subscriptionId)).owed?.nextRetryAt ?? null;

      // A repeat with the time of its own would be at least a second late.
      await eventually(() => expect(Date.now()).toBeGreaterThan(startedAt + 1_500));
      await scenario.goOn();
      await first;
      const row = await settled(scenario, subscriptionId);
      expect((await attempts(scenario)).at(-1)).toBe(`${name} DECLINED`);
      if (isManual) {
        expect(row.cooldownUntilAt).toBe(startedAt + 4 * HOUR_MS);
        expect(row.owed?.nextRetryAt).toBe(planned);
        expect(await scenario.answerTo(RETRY, { subscriptionId }, key)).toMatchObject({
          success: false,
          minManualRetryDate: new Date(startedAt + 4 * HOUR_MS).toISOString(),
        });
      } else {
        expect(row.owed?.automaticAttemptsAt).toEqual([startedAt]);
        expect(row.owed?.nextRetryAt).toBe(startedAt + 4 * HOUR_MS);
      }
      await shop.expectAllDelivered(subscriptionId);
      expect(await verify(env)).toMatchObject({ code: 0 });
    },
  );
});

async function settled(
  scenario: WorkerScenario,
  subscriptionId: string,
): Promise<SubscriptionState> {
  await eventually(async () =>
    expect(await rowOf(scenario, subscriptionId)).toMatchObject({
      status: 'UNPAID',
      openAttempt: null,
    }),
  );
  return rowOf(scenario, subscriptionId);
}
