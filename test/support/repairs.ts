import type { TestEnvironment } from './test-environment.ts';

/** Runs one sweep and returns the number of its repairs by kind. `{}` means no repair. */
export async function repairsOf(
  env: TestEnvironment,
  lookBackMs = 0,
): Promise<Record<string, number>> {
  const report = await env.activities.sweep({ nowAt: Date.now(), lookBackMs });
  return Object.fromEntries(Object.entries(report).filter(([, count]) => count > 0));
}
