/**
 * How many of a merchant's subscriptions have each priority key, the first ones first. Priority keys are
 * Temporal's: tasks with a lower key go first. What the list does not cover has the key after the last.
 */
const SUBSCRIPTIONS_UP_TO = [50, 500, 5_000] as const;

/** Counting a merchant's earlier subscriptions further than this changes nothing. */
export const EARLIER_MOST = Math.max(...SUBSCRIPTIONS_UP_TO);

/**
 * Priority key, 1 to 4, of a subscription's workflow, by how many subscriptions its merchant had before
 * it. So on a billing day the renewals of a merchant with 50 subscriptions wait for at most 50 of each other
 * merchant (ADR 0015).
 */
export function renewalPriority(earlierSubscriptions: number): number {
  const tier = SUBSCRIPTIONS_UP_TO.findIndex((upTo) => earlierSubscriptions < upTo);
  return (tier === -1 ? SUBSCRIPTIONS_UP_TO.length : tier) + 1;
}
