import type { TestEnvironment } from './test-environment.ts';

/** Runs one maintenance sweep, and returns the counts above 0 of its report. `{}`: no repair and no failure. */
export async function repairsOf(
  env: TestEnvironment,
  lookBackMs = 0,
  nowAt = Date.now(),
): Promise<Record<string, number>> {
  const report = await env.activities.sweep({ nowAt, lookBackMs });
  return Object.fromEntries(Object.entries(report).filter(([, count]) => count > 0));
}
