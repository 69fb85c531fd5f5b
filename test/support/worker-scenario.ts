import { Worker } from '@temporalio/worker';
import { and, eq, gt, sql } from 'drizzle-orm';
import { expect, vi } from 'vitest';
import { activityInterceptor } from '../../activities/interceptors.ts';
import { webhookDeliveries } from '../../db/schema/webhook-deliveries.ts';
import { startOurProcess } from './our-process.ts';
import type { OurProcess } from './our-process.ts';
import { paymentsIn } from './payments.ts';
import { openShop } from './shop.ts';
import { createEnvironment } from './test-environment.ts';
import type { TemporalPlace } from './temporal-servers.ts';

/**
 * Time limit in ms for an answer that is not PENDING. The limit is longer than two waits together: Temporal
 * detects a dead worker after 5 s, and the API answers PENDING after 25 s.
 */
export const ANSWERED_WITHIN_MS = 60_000;

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
  /**
   * Starts another worker, which takes over. This worker runs in the test's process, so it is ready at once. First
   * ends the killed worker's claims on deliveries, which otherwise expire after 45 s.
   */
  const goOn = async (): Promise<void> => {
    const ended = await env.db
      .update(webhookDeliveries)
      .set({ claimedUntil: null })
      .where(and(isPending, gt(webhookDeliveries.claimedUntil, sql`now()`)))
      .returning({ eventId: webhookDeliveries.eventId });
    inFlightAtKill += ended.length;
    if (isWhole) return env.startWorkers();
    for (const queue of ['charges', 'webhooks']) {
      const worker = await Worker.create({
        connection: server.nativeConnection,
        taskQueue: env.taskQueuePrefix + queue,
        activities: env.activities,
        interceptors: { activity: [activityInterceptor] },
      });
      const running = worker.run();
      stops.push(() => {
        worker.shutdown();
        return running;
      });
    }
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
    goOn,
    /** Repeats a POST with its key until the answer is not PENDING, and returns the body. */
    async answerTo(path: string, body: object, key: string): Promise<Json> {
      return vi.waitFor(
        async () => {
          const answer = await shop.merchant.post<Json>(path, body, key);
          expect(answer['status']).not.toBe('PENDING');
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
      await vi.waitFor(() => {
        const lines = received(field, streamId);
        expect(lines.length - new Set(lines).size).toBeLessThanOrEqual(inFlightAtKill);
        expect([...new Set(lines)]).toEqual(told);
      }, 30_000);
      await vi.waitFor(async () => {
        const ofStream = and(isPending, eq(webhookDeliveries.streamId, streamId));
        expect(await env.db.select().from(webhookDeliveries).where(ofStream)).toEqual([]);
      }, 30_000);
      expect(await payments.story(streamId)).toHaveLength(told.length);
    },
    async close() {
      await Promise.all(stops.map((stop) => stop()));
      await shop.close();
      await env.close();
    },
  };
}
