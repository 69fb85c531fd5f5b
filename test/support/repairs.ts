import type { TestEnvironment } from './test-environment.ts';

/** The number of repairs of one sweep, by kind. `{}` means no repair. */
export async function repairsOf(
  env: TestEnvironment,
  lookBackMs = 0,
): Promise<Record<string, number>> {
  const report = await env.activities.sweep({ nowAt: Date.now(), lookBackMs });
  return Object.fromEntries(Object.entries(report).filter(([, count]) => count > 0));
}
