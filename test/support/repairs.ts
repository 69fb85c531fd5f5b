import type { World } from './world.ts';

/** The number of repairs of one sweep, by kind. `{}` means no repair. */
export async function repairsOf(world: World, lookBackMs = 0): Promise<Record<string, number>> {
  const report = await world.activities.sweep({ nowAt: Date.now(), lookBackMs });
  return Object.fromEntries(Object.entries(report).filter(([, count]) => count > 0));
}
