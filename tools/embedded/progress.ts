export type Report = (line: string) => void;

/** While `work` runs, reports every `everyMs` how long it has taken. */
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
