/** Receives one progress message, for the terminal or a test's log. */
export type Report = (line: string) => void;

/**
 * Runs `work` and returns its result. While `work` runs, reports every `everyMs` how many seconds it has
 * taken so far.
 */
export async function withStillWorking<T>(
  report: Report,
  what: string,
  work: () => Promise<T>,
  everyMs = 20_000,
): Promise<T> {
  const startedAt = performance.now();
  const timer = setInterval(() => {
    report(`  still ${what} (${Math.round((performance.now() - startedAt) / 1_000)} s)`);
  }, everyMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
