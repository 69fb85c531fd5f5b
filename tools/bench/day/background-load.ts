import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../../cli/command-line/terminal.ts';
import { distributionOf } from '../measure/percentiles.ts';
import type { ClientOf } from '../stack/measured-stack.ts';
import { createOne, payOne, Troubles } from './set-up.ts';

/** Time of each call in ms, from its start to its definite answer, including repeats. */
export type LoadFigures = Awaited<ReturnType<ReturnType<typeof startBackgroundLoad>['end']>>;

/** Time between the starts of two rounds, in ms. Rounds start on time, even if earlier ones are still running. */
const ROUND_MS = 2_000;
const READS_A_ROUND = 4;
/** Maximum number of concurrent rounds. With more, the load itself would dominate the measurement. */
const ROUNDS_AT_ONCE = 20;

/** Coprime to every number of subscriptions that is likely, so that the edits visit the wave in no order. */
const STRIDE = 7_919;

/**
 * Starts a light load of one merchant: 2 reads, 0.5 creates, 0.5 hosted payments and, of `renewing`, 0.5 edits a second.
 */
export function startBackgroundLoad(merchant: ClientOf, renewing: readonly string[] = []) {
  const troubles = new Troubles();
  const client = merchant(() => (troubles.repeats += 1));
  const times: Record<'read' | 'create' | 'checkout' | 'edit', number[]> = {
    read: [],
    create: [],
    checkout: [],
    edit: [],
  };
  const failures: string[] = [];
  const underWay = new Set<Promise<void>>();
  const stop = new AbortController();

  const timed = async <Result>(into: number[], work: () => Promise<Result>): Promise<Result> => {
    const startedAt = performance.now();
    const result = await work();
    into.push(performance.now() - startedAt);
    return result;
  };
  const round = async (): Promise<void> => {
    try {
      const { subscriptionId, fwdUrl } = await timed(times.create, () => createOne(client));
      const reads = async (): Promise<void> => {
        for (let read = 0; read < READS_A_ROUND; read += 1) {
          const path = `/subscription/get-subscription/${subscriptionId}`;
          await timed(times.read, () => client.get(path));
          await sleep(ROUND_MS / READS_A_ROUND);
        }
      };
      const checkout = timed(times.checkout, () => payOne(fwdUrl, troubles));
      await Promise.all([reads(), checkout, editOne()]);
    } catch (error) {
      failures.push(messageOf(error));
    }
  };
  let edits = 0;
  const editOne = async (): Promise<void> => {
    edits += 1;
    const subscriptionId = renewing[(edits * STRIDE) % renewing.length];
    if (subscriptionId === undefined) return;
    const body = { subscriptionId, newAmount: 2_000 + edits };
    await timed(times.edit, () => client.post('/subscription/edit', body));
  };
  const rounds = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      if (underWay.size < ROUNDS_AT_ONCE) {
        const started: Promise<void> = round().finally(() => underWay.delete(started));
        underWay.add(started);
      }
      await sleep(ROUND_MS, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  };
  const running = rounds();
  return {
    /** Starts no more rounds, waits for the running rounds, and returns the figures. */
    end: async () => {
      stop.abort();
      await running;
      await Promise.all(underWay);
      return {
        readMs: distributionOf(times.read),
        createMs: distributionOf(times.create),
        checkoutMs: distributionOf(times.checkout),
        editMs: distributionOf(times.edit),
        repeats: troubles.repeats,
        payersAnswered503: troubles.payersAnswered503,
        failures,
      };
    },
  };
}
