/** How long to wait before asking the gateway the n-th time. Rule: design §4. */
const LOOKUP_DELAYS_MS = [10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000] as const;

/** The wait, in ms, after `lookups` look-ups in vain; the last one repeats for ever. */
export function lookupDelayMs(lookups: number): number {
  return LOOKUP_DELAYS_MS[lookups] ?? 3_600_000;
}
