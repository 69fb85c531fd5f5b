import { and, eq, isNotNull, isNull, lt, ne, or, sql } from 'drizzle-orm';
import type { Db } from '../client.ts';
import { idempotencyKeys } from '../schema/idempotency-keys.ts';
import { subscriptions } from '../schema/subscriptions.ts';
import { testClocks } from '../schema/test-clocks.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';

const ref = { merchantId: subscriptions.merchantId, subscriptionId: subscriptions.id };

/** Subscriptions whose workflow was never confirmed, a while after they were created. */
export function neverStarted(db: Db, limit: number): Promise<SubscriptionRef[]> {
  return db
    .select(ref)
    .from(subscriptions)
    .where(
      and(
        isNull(subscriptions.workflowStartedAt),
        lt(subscriptions.insertedAt, sql`now() - interval '2 seconds'`),
      ),
    )
    .orderBy(subscriptions.insertedAt)
    .limit(limit);
}

/**
 * Subscriptions in real time that should have moved a minute ago and did not, ended ones with an
 * open attempt included.
 */
export function overdue(db: Db, limit: number): Promise<SubscriptionRef[]> {
  return db
    .select(ref)
    .from(subscriptions)
    .where(
      and(
        isNull(subscriptions.testClockId),
        lt(subscriptions.wakeAt, sql`now() - interval '1 minute'`),
        lt(subscriptions.updatedAt, sql`now() - interval '1 minute'`),
      ),
    )
    .orderBy(subscriptions.wakeAt)
    .limit(limit);
}

/** Subscriptions that have not reached their test clock's target, with the target. Rule: D-60. */
export function behindTheirClock(
  db: Db,
  limit: number,
): Promise<(SubscriptionRef & { targetAt: number })[]> {
  return db
    .select({ ...ref, targetAt: testClocks.targetAt })
    .from(subscriptions)
    .innerJoin(
      testClocks,
      and(
        eq(testClocks.merchantId, subscriptions.merchantId),
        eq(testClocks.id, subscriptions.testClockId),
      ),
    )
    .where(
      and(
        isNotNull(subscriptions.testClockId),
        ne(subscriptions.status, 'ENDED'),
        or(
          isNull(subscriptions.clockReachedAt),
          lt(subscriptions.clockReachedAt, testClocks.targetAt),
        ),
        lt(subscriptions.updatedAt, sql`now() - interval '5 seconds'`),
      ),
    )
    .limit(limit);
}

/** Removes idempotency keys past their time, at most `limit`. Real time. Rule: D-17. */
export async function forgetExpiredKeys(db: Db, nowAt: number, limit: number): Promise<void> {
  const expired = db
    .select({ row: sql`${idempotencyKeys}.ctid` })
    .from(idempotencyKeys)
    .where(lt(idempotencyKeys.expiresAt, nowAt))
    .limit(limit);
  await db.delete(idempotencyKeys).where(sql`${idempotencyKeys}.ctid in (${expired})`);
}
