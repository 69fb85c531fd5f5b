/** Longest window: less than the shortest interval, a day. */
export const JITTER_WINDOW_MAX_MS = 12 * 3_600_000;

/**
 * How long after its calendar dates this subscription is charged, in ms from 0 to `windowMs`. A hash
 * of the id, so that it is the same whoever asks, and a merchant's renewals that fall due at one
 * instant do not reach the gateway at one instant.
 */
export function jitterOf(subscriptionId: string, windowMs: number): number {
  return windowMs <= 0 ? 0 : fnv1a(subscriptionId) % (windowMs + 1);
}

/** FNV-1a, 32 bits. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  return hash >>> 0;
}
