import { and, eq, exists, inArray, isNotNull, isNull, lt, ne, not, or, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import type { IntentRef } from '../../../domain/payment-intent.ts';
import type { RefundRef } from '../../../domain/refund.ts';
import type { Db } from '../../client.ts';
import { idempotencyKeys } from '../../schema/merchants.ts';
import { paymentIntents, refunds } from '../../schema/payments.ts';
import { subscriptions, testClocks } from '../../schema/subscriptions.ts';
import { hasToReach } from '../merchants/test-clocks.ts';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import { areFirst, isRecord } from '../records.ts';

const ref = { merchantId: subscriptions.merchantId, subscriptionId: subscriptions.id };

/**
 * Takes at most `limit` subscriptions with `condition`: those that no sweep has taken, by `oldest`, then those taken
 * longest ago, so that rows that cannot be repaired block no others.
 */
function takeSubscriptions(
  db: Db,
  condition: SQL | undefined,
  oldest: AnyPgColumn,
  limit: number,
): Promise<SubscriptionRef[]> {
  const order = [sql`${subscriptions.sweptAt} asc nulls first`, oldest];
  return db
    .update(subscriptions)
    .set({ sweptAt: sql`now()` })
    .where(areFirst(db, subscriptions, { condition, order, limit }))
    .returning(ref);
}

/** Takes subscriptions that are older than 10 s and whose workflow start is not confirmed. */
export function takeNeverStarted(db: Db, limit: number): Promise<SubscriptionRef[]> {
  const condition = and(
    isNull(subscriptions.workflowStartedAt),
    lt(subscriptions.insertedAt, sql`now() - interval '10 seconds'`),
  );
  return takeSubscriptions(db, condition, subscriptions.insertedAt, limit);
}

const IS_OVERDUE = and(
  isNull(subscriptions.testClockId),
  isNull(subscriptions.heldAt),
  lt(subscriptions.wakeAt, sql`now() - interval '1 minute'`),
  lt(subscriptions.updatedAt, sql`now() - interval '1 minute'`),
);

/** Takes subscriptions without a test clock whose step is overdue and row old by a minute. */
export function takeOverdue(db: Db, limit: number): Promise<SubscriptionRef[]> {
  return takeSubscriptions(db, IS_OVERDUE, subscriptions.wakeAt, limit);
}

export async function isOverdue(
  db: Db,
  { merchantId, subscriptionId }: SubscriptionRef,
): Promise<boolean> {
  const isRow = and(isRecord(subscriptions, merchantId, subscriptionId), IS_OVERDUE);
  return (await db.$count(subscriptions, isRow)) > 0;
}

/**
 * Takes subscriptions on a test clock that are 30 s behind its target, or whose open attempt's look-up is overdue by a
 * minute.
 */
export async function takeBehindTheirClock(
  db: Db,
  limit: number,
): Promise<(SubscriptionRef & { targetAt: number })[]> {
  const isClock = isRecord(testClocks, subscriptions.merchantId, subscriptions.testClockId);
  const clock = db
    .select({ id: testClocks.id })
    .from(testClocks)
    .where(
      and(
        isClock,
        hasToReach(testClocks.targetAt),
        lt(testClocks.sentAt, sql`now() - interval '30 seconds'`),
      ),
    );
  const condition = and(
    isNotNull(subscriptions.testClockId),
    isNull(subscriptions.heldAt),
    lt(subscriptions.updatedAt, sql`now() - interval '30 seconds'`),
    or(
      and(exists(clock), sql`${subscriptions.state} ->> 'openAttempt' is null`),
      // For an open attempt `wakeAt` is real time, also on a test clock that has reached its target.
      and(
        sql`${subscriptions.state} ->> 'openAttempt' is not null`,
        lt(subscriptions.wakeAt, sql`now() - interval '1 minute'`),
        lt(subscriptions.updatedAt, sql`now() - interval '1 minute'`),
      ),
    ),
  );
  const taken = await takeSubscriptions(db, condition, subscriptions.insertedAt, limit);
  if (taken.length === 0) return [];
  const ids = taken.map(({ subscriptionId }) => subscriptionId);
  return db
    .select({ ...ref, targetAt: testClocks.targetAt })
    .from(subscriptions)
    .innerJoin(testClocks, isClock)
    .where(inArray(subscriptions.id, ids));
}

const IS_LIVE = and(
  ne(subscriptions.status, 'ENDED'),
  isNull(subscriptions.heldAt),
  lt(subscriptions.workflowStartedAt, sql`now() - interval '1 minute'`),
);

/** Returns the number of subscriptions whose workflow was started at least a minute ago, and must run. */
export function countLive(db: Db): Promise<number> {
  return db.$count(subscriptions, IS_LIVE);
}

export function takeLive(db: Db, limit: number): Promise<SubscriptionRef[]> {
  return takeSubscriptions(db, IS_LIVE, subscriptions.insertedAt, limit);
}

/** Takes held subscriptions, whose workflow an operator may have terminated. */
export function takeHeld(db: Db, limit: number): Promise<SubscriptionRef[]> {
  return takeSubscriptions(db, isNotNull(subscriptions.heldAt), subscriptions.heldAt, limit);
}

export function countHeld(db: Db): Promise<number> {
  return db.$count(subscriptions, isNotNull(subscriptions.heldAt));
}

/** Returns the condition that no idempotency key can repeat the record's command. */
function isUnkeyed(id: SQL, merchantId: SQL): SQL {
  return sql`not exists (
    select from ${idempotencyKeys} where ${idempotencyKeys.merchantId} = ${merchantId}
      and ${idempotencyKeys.commandId} = 'cmd_' || substr(${id}, 4))`;
}

/** Charges whose caller cannot repeat them and may have sent a new request: void, never send. */
function isUnkeyedPayment(): SQL {
  return sql`(${paymentIntents.status} = 'CREATED' and ${paymentIntents.kind} in ('one_time', 'tokenised')
    and ${isUnkeyed(sql`${paymentIntents.id}`, sql`${paymentIntents.merchantId}`)})`;
}

/** Like {@link isUnkeyedPayment}, for refunds. Omits refunds of late charges, because these must be executed. */
function isUnkeyedRefund(): SQL {
  return sql`(${refunds.state} = 'CREATED' and ${refunds.lateAttemptId} is null
    and ${isUnkeyed(sql`${refunds.id}`, sql`${refunds.merchantId}`)})`;
}

/** Takes the rows that have not changed for a minute, the oldest first. Taking changes a row. */
function takeUnchanged(
  db: Db,
  table: typeof paymentIntents | typeof refunds,
  which: SQL | undefined,
  limit: number,
): Promise<{ merchantId: string; id: string }[]> {
  const { merchantId, id, updatedAt } = table;
  const condition = and(lt(updatedAt, sql`now() - interval '1 minute'`), which);
  return db
    .update(table)
    .set({ updatedAt: sql`now()` })
    .where(areFirst(db, table, { condition, order: [updatedAt], limit }))
    .returning({ merchantId, id });
}

async function takeIntents(db: Db, which: SQL | undefined, limit: number): Promise<IntentRef[]> {
  const taken = await takeUnchanged(db, paymentIntents, which, limit);
  return taken.map(({ merchantId, id: intentId }) => ({ merchantId, intentId }));
}

async function takeRefunds(db: Db, which: SQL | undefined, limit: number): Promise<RefundRef[]> {
  const taken = await takeUnchanged(db, refunds, which, limit);
  return taken.map(({ merchantId, id: refundId }) => ({ merchantId, refundId }));
}

/** Takes undecided payments outside the billing cycles, except those of {@link takeUnkeyedPayments}. */
export function takeOpenPayments(db: Db, limit: number): Promise<IntentRef[]> {
  return takeIntents(
    db,
    and(
      ne(paymentIntents.kind, 'cycle'),
      inArray(paymentIntents.status, ['CREATED', 'PENDING']),
      // Hosted payments without an attempt wait for their payers.
      or(ne(paymentIntents.kind, 'hosted'), eq(paymentIntents.status, 'PENDING')),
      not(isUnkeyedPayment()),
    ),
    limit,
  );
}

/** Takes charges without an idempotency key and without an attempt. If no workflow runs for one, it must be voided. */
export function takeUnkeyedPayments(db: Db, limit: number): Promise<IntentRef[]> {
  return takeIntents(db, isUnkeyedPayment(), limit);
}

/** Takes refunds without an idempotency key that were not sent. If no workflow runs for one, it must be voided. */
export function takeUnkeyedRefunds(db: Db, limit: number): Promise<RefundRef[]> {
  return takeRefunds(db, isUnkeyedRefund(), limit);
}

/** Omits those of {@link takeUnkeyedRefunds}. A PENDING refund is taken at most once an hour. */
export function takeOpenRefunds(db: Db, limit: number): Promise<RefundRef[]> {
  return takeRefunds(
    db,
    and(
      inArray(refunds.state, ['CREATED', 'SENDING', 'UNKNOWN', 'PENDING']),
      or(ne(refunds.state, 'PENDING'), lt(refunds.updatedAt, sql`now() - interval '1 hour'`)),
      not(isUnkeyedRefund()),
    ),
    limit,
  );
}

/** Deletes expired idempotency keys, except keys that a request claims again at the same time. `nowAt` is real time. */
export async function forgetExpiredKeys(db: Db, nowAt: number, limit: number): Promise<void> {
  const condition = lt(idempotencyKeys.expiresAt, nowAt);
  await db.delete(idempotencyKeys).where(areFirst(db, idempotencyKeys, { condition, limit }));
}
