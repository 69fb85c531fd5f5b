import type { World } from './world.ts';

/** What one sweep repaired, by kind: `{}` when nothing was wrong. */
export async function repairsOf(world: World, lookBackMs = 0): Promise<Record<string, number>> {
  const report = await world.activities.sweep({ nowAt: Date.now(), lookBackMs });
  return Object.fromEntries(Object.entries(report).filter(([, count]) => count > 0));
}
