/** Longest jitter window, in ms, shorter than the shortest interval, which is one day. */
export const JITTER_WINDOW_MAX_MS = 12 * 3_600_000;

/**
 * Returns a delay in ms, 0 to `windowMs`, that spreads work due at the same instant. It is a hash of `key`, so every
 * call returns the same value.
 */
export function jitterOf(key: string, windowMs: number): number {
  return windowMs <= 0 ? 0 : fnv1a(key) % (windowMs + 1);
}

function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}
