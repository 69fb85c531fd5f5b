import { and, eq, inArray, isNotNull, isNull, lt, ne, or, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { IntentRef } from '../../domain/payment-intent.ts';
import type { RefundRef } from '../../domain/refund.ts';
import type { Db } from '../client.ts';
import { idempotencyKeys } from '../schema/idempotency-keys.ts';
import { paymentIntents } from '../schema/payment-intents.ts';
import { refunds } from '../schema/refunds.ts';
import { subscriptions } from '../schema/subscriptions.ts';
import { testClocks } from '../schema/test-clocks.ts';
import { hasToReach } from './test-clocks.ts';
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
        lt(subscriptions.insertedAt, sql`now() - interval '10 seconds'`),
      ),
    )
    .orderBy(subscriptions.insertedAt)
    .limit(limit);
}

const IS_OVERDUE = and(
  isNull(subscriptions.testClockId),
  lt(subscriptions.wakeAt, sql`now() - interval '1 minute'`),
  lt(subscriptions.updatedAt, sql`now() - interval '1 minute'`),
);

/**
 * Subscriptions in real time that should have moved a minute ago and did not, ended ones with an
 * open attempt included.
 */
export function overdue(db: Db, limit: number): Promise<SubscriptionRef[]> {
  return db
    .select(ref)
    .from(subscriptions)
    .where(IS_OVERDUE)
    .orderBy(subscriptions.wakeAt)
    .limit(limit);
}

/** True while `overdue` would find the subscription. */
export async function isOverdue(
  db: Db,
  { merchantId, subscriptionId }: SubscriptionRef,
): Promise<boolean> {
  const isRow = and(
    eq(subscriptions.merchantId, merchantId),
    eq(subscriptions.id, subscriptionId),
    IS_OVERDUE,
  );
  return (await db.$count(subscriptions, isRow)) > 0;
}

/**
 * Subscriptions that should be on their way to their test clock's target, and have not moved for 30 s,
 * with the target. One with an open attempt stands where it is until that is decided, and is behind
 * when its look-up is. Rule: D-60.
 */
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
        hasToReach(testClocks.targetAt),
        lt(testClocks.sentAt, sql`now() - interval '30 seconds'`),
        lt(subscriptions.updatedAt, sql`now() - interval '30 seconds'`),
        or(
          sql`${subscriptions.state} ->> 'openAttempt' is null`,
          // An open attempt is due in real time, whatever clock the subscription lives by.
          lt(subscriptions.wakeAt, sql`now() - interval '1 minute'`),
        ),
      ),
    )
    .limit(limit);
}

/**
 * Payments outside a cycle that should be decided and made no progress for a minute: a merchant's own
 * charge that was not handed over, and every one with an attempt open. They are marked as looked at,
 * so that the same ones do not come up again for a minute and crowd out others.
 */
export async function takeOpenPayments(db: Db, limit: number): Promise<IntentRef[]> {
  const open = db
    .select({ row: sql`${paymentIntents}.ctid` })
    .from(paymentIntents)
    .where(
      and(
        ne(paymentIntents.kind, 'cycle'),
        inArray(paymentIntents.status, ['CREATED', 'PENDING']),
        // A hosted one without an attempt waits for its payer.
        or(ne(paymentIntents.kind, 'hosted'), eq(paymentIntents.status, 'PENDING')),
        lt(paymentIntents.updatedAt, sql`now() - interval '1 minute'`),
      ),
    )
    .orderBy(paymentIntents.updatedAt)
    .limit(limit)
    .for('update', { skipLocked: true });
  return db
    .update(paymentIntents)
    .set({ updatedAt: sql`now()` })
    .where(sql`${paymentIntents}.ctid in (${open})`)
    .returning({ merchantId: paymentIntents.merchantId, intentId: paymentIntents.id });
}

/** No Idempotency-Key leads to the command that made it: nobody can ask for it again. */
function isUnkeyed(id: SQL, merchantId: SQL): SQL {
  return sql`not exists (
    select from ${idempotencyKeys} where ${idempotencyKeys.merchantId} = ${merchantId}
      and ${idempotencyKeys.commandId} = 'cmd_' || substr(${id}, 4))`;
}

/**
 * Charges that a merchant asked for without a key, and that have not begun a minute later: unless a
 * workflow has them, whoever asked was never answered. Rule: D-17.
 */
export function unkeyedPayments(db: Db, limit: number): Promise<IntentRef[]> {
  return db
    .select({ merchantId: paymentIntents.merchantId, intentId: paymentIntents.id })
    .from(paymentIntents)
    .where(
      and(
        inArray(paymentIntents.kind, ['one_time', 'tokenised']),
        eq(paymentIntents.status, 'CREATED'),
        lt(paymentIntents.updatedAt, sql`now() - interval '1 minute'`),
        isUnkeyed(sql`${paymentIntents.id}`, sql`${paymentIntents.merchantId}`),
      ),
    )
    .limit(limit);
}

/** The same of refunds. Nobody asks for a late charge to go back, with a key or without: it goes. */
export function unkeyedRefunds(db: Db, limit: number): Promise<RefundRef[]> {
  return db
    .select({ merchantId: refunds.merchantId, refundId: refunds.id })
    .from(refunds)
    .where(
      and(
        eq(refunds.state, 'CREATED'),
        isNull(refunds.lateAttemptId),
        lt(refunds.updatedAt, sql`now() - interval '1 minute'`),
        isUnkeyed(sql`${refunds.id}`, sql`${refunds.merchantId}`),
      ),
    )
    .limit(limit);
}

/** Refunds that should be decided and made no progress for a minute. Marked like open payments. */
export async function takeOpenRefunds(db: Db, limit: number): Promise<RefundRef[]> {
  const open = db
    .select({ row: sql`${refunds}.ctid` })
    .from(refunds)
    .where(
      and(
        inArray(refunds.state, ['CREATED', 'SENDING', 'UNKNOWN']),
        lt(refunds.updatedAt, sql`now() - interval '1 minute'`),
      ),
    )
    .orderBy(refunds.updatedAt)
    .limit(limit)
    .for('update', { skipLocked: true });
  return db
    .update(refunds)
    .set({ updatedAt: sql`now()` })
    .where(sql`${refunds}.ctid in (${open})`)
    .returning({ merchantId: refunds.merchantId, refundId: refunds.id });
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
