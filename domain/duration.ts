const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

/** Converts `90m`, `4h`, `2d`, `45s` or `0` to ms. Null for any other text. */
export function parseDuration(text: string): number | null {
  if (text === '0') return 0;
  const [, count, unit] = /^(\d{1,6})([dhms])$/.exec(text) ?? [];
  const unitMs = UNITS.find(([name]) => name === unit)?.[1];
  return count === undefined || unitMs === undefined ? null : Number(count) * unitMs;
}

/** In the largest unit that gives a whole number. {@link parseDuration} reads whole seconds above 0. */
export function formatDuration(ms: number): string {
  const unit = UNITS.find(([, unitMs]) => ms >= unitMs && ms % unitMs === 0);
  return unit === undefined ? `${ms}ms` : `${ms / unit[1]}${unit[0]}`;
}
