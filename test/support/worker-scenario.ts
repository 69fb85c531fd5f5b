import { Worker } from '@temporalio/worker';
import { and, eq, gt, sql } from 'drizzle-orm';
import { expect, vi } from 'vitest';
import { activityInterceptor } from '../../activities/interceptors.ts';
import { webhookDeliveries } from '../../db/schema/webhooks.ts';
import { eventually } from './eventually.ts';
import { startOurProcess } from './our-process.ts';
import type { OurProcess } from './our-process.ts';
import { paymentsIn } from './payments.ts';
import { openShop } from './shop.ts';
import { createEnvironment } from './test-environment.ts';
import type { TemporalPlace } from './temporal-servers.ts';

/**
 * Time limit in ms for an answer with an outcome. The limit is several times as long as two waits together: Temporal
 * detects a dead worker after 5 s, and the API answers PENDING after 25 s.
 */
export const ANSWERED_WITHIN_MS = 120_000;

const isPending = eq(webhookDeliveries.state, 'PENDING');

type Json = Record<string, unknown>;

export type WorkerScenario = Awaited<ReturnType<typeof openWorkerScenario>>;

/**
 * Opens a merchant fixture without an activity worker: the test starts and kills workers. With `isWhole`
 * there is no workflow worker either, and started workers also run workflows. `stripeUrl` is the address of a
 * Stripe double.
 */
export async function openWorkerScenario(
  server: TemporalPlace,
  { isWhole = false, stripeUrl }: { isWhole?: boolean; stripeUrl?: string } = {},
) {
  const env = await createEnvironment(server, {
    runsActivities: isWhole,
    ...(stripeUrl === undefined ? {} : { stripeUrl }),
  });
  if (isWhole) await env.stopWorkers();
  const shop = await openShop(env);
  const { merchantId } = env;
  const stops: (() => Promise<void>)[] = [];

  /** Starts a worker process that kills itself at the failpoint; without one, the test kills the process. */
  const startMortal = async (failpoint = ''): Promise<OurProcess> => {
    const mortal = await startOurProcess('worker.ts', {
      ...env.variables,
      ...(isWhole ? {} : { WORKER_QUEUES: 'charges,webhooks' }),
      FAILPOINT: failpoint,
    });
    stops.push(() => mortal.stop());
    return mortal;
  };
  /** Number of deliveries that were in flight when a worker was killed. Each may be received twice. */
  let inFlightAtKill = 0;
  /** Starts a worker in the test's process, where it is ready at once. Returns a function that stops the worker. */
  const startWorker = async (): Promise<() => Promise<void>> => {
    if (isWhole) {
      await env.startWorkers();
      return () => env.stopWorkers();
    }
    const workers = await Promise.all(
      ['charges', 'webhooks'].map((queue) =>
        Worker.create({
          connection: server.nativeConnection,
          taskQueue: env.taskQueuePrefix + queue,
          activities: env.activities,
          interceptors: { activity: [activityInterceptor(() => undefined)] },
        }),
      ),
    );
    const running = Promise.all(workers.map((worker) => worker.run()));
    return async () => {
      for (const worker of workers) worker.shutdown();
      await running;
    };
  };
  /**
   * Waits until Postgres has closed the killed worker's connections. Until then Postgres may still execute and commit a
   * statement of the killed worker, for example a claim on a delivery.
   */
  const statementsEnded = () =>
    eventually(async () => {
      const connections = await env.db.execute(sql`
        select query from pg_stat_activity
        where datname = current_database() and application_name = 'perennial-worker'`);
      expect([...connections]).toEqual([]);
    });
  /**
   * Starts another worker, which takes over from the killed one. First ends the killed worker's claims on deliveries,
   * which otherwise expire after 45 s.
   */
  const goOn = async (): Promise<void> => {
    await statementsEnded();
    const ended = await env.db
      .update(webhookDeliveries)
      .set({ claimedUntil: null })
      .where(and(isPending, gt(webhookDeliveries.claimedUntil, sql`now()`)))
      .returning({ eventId: webhookDeliveries.eventId });
    inFlightAtKill += ended.length;
    stops.push(await startWorker());
  };
  /** `sequence type` of each received webhook of a stream, one line each. */
  const received = (field: string, id: string) =>
    shop.receiver.received
      .filter(({ event }) => event[field] === id)
      .map(({ event }) => `${event.sequence} ${event.eventType}`);
  const payments = paymentsIn(env);
  return {
    env,
    shop,
    payments,
    merchantId,
    startMortal,
    startWorker,
    statementsEnded,
    goOn,
    /** Repeats a POST with its key until the answer has an outcome, and returns the body. */
    async answerTo(path: string, body: object, key: string): Promise<Json> {
      return vi.waitFor(
        async () => {
          const answer = await shop.merchant.post<Json>(path, body, key);
          expect(['PENDING', 'ADVANCING']).not.toContain(answer['status']);
          return answer;
        },
        { timeout: ANSWERED_WITHIN_MS, interval: 250 },
      );
    },
    received,
    /**
     * Expects that exactly these events of a stream were received and no delivery is pending. Only a delivery in
     * flight at the kill may be received twice.
     */
    async expectTold(field: string, streamId: string, told: string[]): Promise<void> {
      await eventually(() => {
        const lines = received(field, streamId);
        expect(lines.length - new Set(lines).size).toBeLessThanOrEqual(inFlightAtKill);
        expect([...new Set(lines)]).toEqual(told);
      });
      await eventually(async () => {
        const ofStream = and(isPending, eq(webhookDeliveries.streamId, streamId));
        expect(await env.db.select().from(webhookDeliveries).where(ofStream)).toEqual([]);
      });
      expect(await payments.story(streamId)).toHaveLength(told.length);
    },
    async close() {
      await Promise.all(stops.map((stop) => stop()));
      await shop.close();
      await env.close();
    },
  };
}
