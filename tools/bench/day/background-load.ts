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

/** Starts a light load of one merchant: 2 reads, 0.5 creates and 0.5 hosted payments a second. */
export function startBackgroundLoad(merchant: ClientOf) {
  const troubles = new Troubles();
  const client = merchant(() => (troubles.repeats += 1));
  const times = { read: [] as number[], create: [] as number[], checkout: [] as number[] };
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
      await Promise.all([reads(), timed(times.checkout, () => payOne(fwdUrl, troubles))]);
    } catch (error) {
      failures.push(messageOf(error));
    }
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
        repeats: troubles.repeats,
        payersAnswered503: troubles.payersAnswered503,
        failures,
      };
    },
  };
}
