import { isServing } from '../../embedded/temporal-cluster.ts';
import { waitFor } from '../../scripts/client/wait-for.ts';
import type { Killer } from './killer.ts';
import type { Load } from './load.ts';

export interface Outage {
  readonly seconds: number;
  readonly cyclesMeanwhile: number;
  /** Requests of clients that still waited for a definite answer when the outage ended. */
  readonly waiting: number;
  /** Seconds from the end of the outage until the last of these requests had its definite answer. */
  readonly drainSeconds: number;
  readonly cyclesDrained: number;
}

const BACK_WITHIN_MS = 120_000;

/**
 * Makes Temporal unreachable under full load, then measures the time to process the backlog. A client repeats
 * the request to advance a test clock until every cycle up to the new date has an outcome. So when all
 * waiting requests are answered, the backlog is processed.
 */
export async function measureOutage(
  seconds: number,
  system: {
    readonly killer: Killer;
    readonly load: Load;
    readonly temporalAddress: string;
    readonly cycles: () => Promise<number>;
  },
): Promise<Outage> {
  const { killer, load, temporalAddress, cycles } = system;
  const startedAt = performance.now();
  const cyclesBefore = await cycles();
  await killer.keepAway('temporal', seconds * 1_000);
  await waitFor('Temporal to be back', BACK_WITHIN_MS, () =>
    isServing(temporalAddress).catch(() => undefined),
  );
  const backAt = performance.now();
  const [waiting, cyclesAtReturn] = [load.client.waiting, await cycles()];
  await load.client.answered();
  return {
    seconds: (backAt - startedAt) / 1_000,
    cyclesMeanwhile: cyclesAtReturn - cyclesBefore,
    waiting,
    drainSeconds: (performance.now() - backAt) / 1_000,
    cyclesDrained: (await cycles()) - cyclesAtReturn,
  };
}
