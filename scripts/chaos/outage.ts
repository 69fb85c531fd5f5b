import { isServing } from '../../embedded/temporal-cluster.ts';
import { waitFor } from '../client/patience.ts';
import type { Killer } from './killer.ts';
import type { Load } from './load.ts';

/** What became of the time without Temporal. */
export interface Outage {
  /** Of the outage itself, with the server's own start after it. */
  readonly seconds: number;
  /** Cycles that were paid in it all the same. */
  readonly cyclesMeanwhile: number;
  /** Orders of clients that waited for their answer when it ended. */
  readonly waiting: number;
  /** From when Temporal was back until the last of those had its definite answer. */
  readonly drainSeconds: number;
  /** Cycles that were paid in that time. */
  readonly cyclesDrained: number;
}

const BACK_WITHIN_MS = 120_000;

/**
 * Temporal is out of reach for a while under full load; then measures how long the backlog takes. An
 * advanced test clock has its answer when every cycle up to its new date is decided, so the answers
 * are the backlog.
 */
export async function sitOut(
  seconds: number,
  world: {
    readonly killer: Killer;
    readonly load: Load;
    readonly temporalAddress: string;
    readonly cycles: () => Promise<number>;
  },
): Promise<Outage> {
  const { killer, load, temporalAddress, cycles } = world;
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
