import { isServing } from '../../embedded/temporal-cluster.ts';
import { waitFor } from '../../scripts/client/wait-for.ts';
import type { Killer } from './killer.ts';
import type { Load } from './load.ts';

export interface Outage {
  readonly seconds: number;
  readonly cyclesMeanwhile: number;
  readonly waiting: number;
  readonly drainSeconds: number;
  readonly cyclesDrained: number;
}

const BACK_WITHIN_MS = 120_000;

/** An advance is answered when every cycle up to its date has an outcome: all answered, the backlog is processed. */
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
