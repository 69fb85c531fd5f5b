import { and, count, isNull, lt, ne, or, sql } from 'drizzle-orm';
import { isId } from '../../../domain/ids.ts';
import type { Db } from '../../client.ts';
import { subscriptions, testClocks } from '../../schema/subscriptions.ts';
import { hasValues, isRecord } from '../records.ts';

export type TestClock = Omit<typeof testClocks.$inferSelect, 'sentAt'>;

export async function insertTestClock(db: Db, clock: TestClock): Promise<void> {
  await db.insert(testClocks).values(clock);
}

/** `lock`: `share` for a new subscription, `update` for an advance. Null for another merchant's. */
export async function findTestClock(
  db: Db,
  merchantId: string,
  testClockId: string,
  lock?: 'share' | 'update',
): Promise<TestClock | null> {
  if (!isId('clk', testClockId)) return null;
  const query = db
    .select()
    .from(testClocks)
    .where(isRecord(testClocks, merchantId, testClockId));
  const [row] = await (lock === undefined ? query : query.for(lock));
  return row ?? null;
}

/** Returns the number of the clock's subscriptions that are not ENDED and have not reached the target. */
export async function countBehind(db: Db, clock: TestClock): Promise<number> {
  const [row] = await db.select({ behind: count() }).from(subscriptions).where(isBehind(clock));
  return row?.behind ?? 0;
}

/** Sets the clock's target. The caller must hold the lock on the clock's row. */
export async function sendTestClock(db: Db, clock: TestClock, targetAt: number): Promise<void> {
  await db
    .update(testClocks)
    .set({ targetAt, sentAt: sql`now()` })
    .where(isRecord(testClocks, clock.merchantId, clock.id));
}

/** Returns the ids of the clock's subscriptions that are not ENDED and have not reached the target, oldest first. */
export async function subscriptionsBehind(db: Db, clock: TestClock): Promise<string[]> {
  const rows = await db
    .select({ id: subscriptions.id })
    .from(subscriptions)
    .where(isBehind(clock))
    .orderBy(sql`${subscriptions.id} collate "C"`);
  return rows.map((row) => row.id);
}

function isBehind(clock: TestClock) {
  return and(
    hasValues(subscriptions, { merchantId: clock.merchantId, testClockId: clock.id }),
    hasToReach(clock.targetAt),
  );
}

/** Returns the SQL condition: the subscription is not ENDED and has not reached `targetAt`. */
export function hasToReach(targetAt: number | typeof testClocks.targetAt) {
  return and(
    ne(subscriptions.status, 'ENDED'),
    or(isNull(subscriptions.clockReachedAt), lt(subscriptions.clockReachedAt, targetAt)),
  );
}
