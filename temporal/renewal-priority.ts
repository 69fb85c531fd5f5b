/**
 * Upper limits of the priority tiers: a merchant's first 50 subscriptions have priority key 1, up to
 * 500 key 2, up to 5,000 key 3, and the rest key 4. Temporal dispatches tasks with a lower key first.
 */
const SUBSCRIPTIONS_UP_TO = [50, 500, 5_000] as const;

/** Counting a merchant's earlier subscriptions beyond this limit does not change the key. */
export const EARLIER_MOST = Math.max(...SUBSCRIPTIONS_UP_TO);

/**
 * The priority key, 1 to 4, of a subscription's workflow. It depends on the number of subscriptions
 * that its merchant had before. On a billing day the renewals of a merchant with 50 subscriptions
 * therefore wait for at most 50 renewals of each other merchant (ADR 0015).
 */
export function renewalPriority(earlierSubscriptions: number): number {
  const tier = SUBSCRIPTIONS_UP_TO.findIndex((upTo) => earlierSubscriptions < upTo);
  return (tier === -1 ? SUBSCRIPTIONS_UP_TO.length : tier) + 1;
}
