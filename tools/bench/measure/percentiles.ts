/** The smallest value that is at least as large as `percent` % of the values. NaN without values. */
function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN;
}

export type Distribution = ReturnType<typeof distributionOf>;

export function distributionOf(values: readonly number[]) {
  const at = (percent: number): number | null =>
    values.length === 0 ? null : percentile(values, percent);
  return { count: values.length, p50: at(50), p99: at(99), max: at(100) };
}
