import { isServing } from '../../embedded/temporal-cluster.ts';
import { grouped } from '../../../cli/command-line/terminal.ts';
import { waitFor } from '../../scripts/client/wait-for.ts';
import type { Figure } from './gateway-faults.ts';
import type { Killer } from './killer.ts';
import type { Load } from './load.ts';

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
): Promise<Figure[]> {
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
  const answeredAt = performance.now();
  const shown = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
  return [
    ['time without Temporal', shown(backAt - startedAt)],
    ['cycles paid without Temporal', grouped(cyclesAtReturn - cyclesBefore)],
    ['client commands that waited for Temporal', String(waiting)],
    ['time until all of them were answered', shown(answeredAt - backAt)],
    ['cycles paid in that time', grouped((await cycles()) - cyclesAtReturn)],
  ];
}
