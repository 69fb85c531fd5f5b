import { and, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import { ENTRIES_SHOWN } from '../../../domain/subscription/describe.ts';
import type { Snapshot } from '../../../domain/subscription/snapshot.ts';
import type { CommandResult } from '../../../domain/subscription/commands.ts';
import { knownUntil } from '../../../domain/subscription/state.ts';
import type { SubscriptionRef, SubscriptionState } from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { subscriptionCommands, subscriptions, testClocks } from '../../schema/subscriptions.ts';
import { latestEntries } from './entries.ts';
import { isRow, isVersion, loadRow } from './read.ts';
import type { VersionRef } from './read.ts';
import { hasValues, isRecord } from '../records.ts';

/**
 * Returns an executed command; null if the command was not executed. `result` is null while the outcome is
 * unknown.
 */
export async function findCommand(
  db: Db,
  ref: SubscriptionRef,
  commandId: string,
): Promise<{ result: CommandResult | null } | null> {
  const [row] = await db
    .select({ result: subscriptionCommands.result })
    .from(subscriptionCommands)
    .where(isCommand(ref, commandId));
  return row ?? null;
}

/**
 * Returns the records with which a workflow starts; null for an unknown subscription. Counts the merchant's earlier
 * subscriptions up to `earlierMost`.
 */
export async function loadSnapshot(
  db: Db,
  ref: SubscriptionRef,
  earlierMost = 0,
): Promise<Snapshot | null> {
  const [row] = await db
    .select({
      state: subscriptions.state,
      createdAt: subscriptions.createdAt,
      reachedAt: subscriptions.clockReachedAt,
      targetAt: testClocks.targetAt,
      productPage: subscriptions.productPage,
      receiptId: subscriptions.receiptId,
      isHeld: sql<boolean>`${subscriptions.heldAt} is not null`,
      entries: latestEntries(ENTRIES_SHOWN),
      // A CREATED subscription has the priority of a payer.
      earlier: sql<number>`case when ${subscriptions.status} = 'CREATED' then 0 else ${countEarlier(earlierMost)} end`,
      hasPendingEvents: sql<boolean>`exists (
        select from webhook_delivery d
        where d.merchant_id = ${subscriptions.merchantId} and d.stream_id = ${subscriptions.id}
          and d.state = 'PENDING')`,
    })
    .from(subscriptions)
    .leftJoin(testClocks, isRecord(testClocks, subscriptions.merchantId, subscriptions.testClockId))
    .where(isRow(ref));
  if (!row) return null;
  const { state, createdAt, reachedAt, targetAt, productPage, ...others } = row;
  const rest = { ...others, productName: productPage?.name ?? null };
  if (targetAt === null) return { state, clock: null, ...rest };
  const clock = { targetAt, reachedAt: reachedAt ?? createdAt };
  // While the clock advances, the subscription may have passed the time that it recorded last.
  const nowAt = Math.min(targetAt, Math.max(clock.reachedAt, knownUntil(state)));
  return { state, clock: { nowAt, ...clock }, ...rest };
}

/** SQL expression: how many subscriptions the merchant had before the selected one, at most `most`. */
export function countEarlier(most: number): SQL<number> {
  return sql<number>`(
    select count(*)::int
    from (
      select from subscription e
      where e.merchant_id = subscription.merchant_id
        and (e.created_at, e.id) < (subscription.created_at, subscription.id)
      order by e.created_at, e.id limit ${most}
    ) e
  )`;
}

/**
 * Records that no step is due up to `reachedAt` on the test clock; the value never decreases. If the row has another
 * version, returns its state; else null.
 */
export async function recordClockReached(
  db: Db,
  at: VersionRef,
  reachedAt: number,
): Promise<SubscriptionState | null> {
  const instant = new Date(reachedAt).toISOString();
  const recorded = await db
    .update(subscriptions)
    .set({
      clockReachedAt: sql`greatest(${subscriptions.clockReachedAt}, ${instant}::timestamptz)`,
      updatedAt: sql`now()`,
    })
    .where(isVersion(at))
    .returning({ id: subscriptions.id });
  return recorded.length > 0 ? null : (await loadRow(db, at)).state;
}

/** Returns the row's state if the row does not have this version; else null. */
export async function findOtherVersion(db: Db, at: VersionRef): Promise<SubscriptionState | null> {
  const { state } = await loadRow(db, at);
  return state.version === at.version ? null : state;
}

async function markWorkflowStarted(db: Db, ref: SubscriptionRef): Promise<void> {
  await db
    .update(subscriptions)
    .set({ workflowStartedAt: sql`now()` })
    .where(and(isRow(ref), sql`${subscriptions.workflowStartedAt} is null`));
}

/** Records that the workflow is newer than the row, and is held. A repeat keeps the first time. */
export async function recordHold(db: Db, ref: SubscriptionRef): Promise<void> {
  await db
    .update(subscriptions)
    .set({ heldAt: sql`now()` })
    .where(and(isRow(ref), sql`${subscriptions.heldAt} is null`));
}

/** Ends the hold of a subscription, because a workflow starts from its row or has its state. */
export async function endHold(db: Db, ref: SubscriptionRef): Promise<void> {
  await db
    .update(subscriptions)
    .set({ heldAt: null })
    .where(and(isRow(ref), sql`${subscriptions.heldAt} is not null`));
}

export function isCommand({ merchantId, subscriptionId }: SubscriptionRef, commandId: string) {
  return hasValues(subscriptionCommands, { merchantId, subscriptionId, commandId });
}

export function subscriptionRows(db: Db) {
  return {
    findCommand: (ref: SubscriptionRef, commandId: string) => findCommand(db, ref, commandId),
    loadSnapshot: (ref: SubscriptionRef, earlierMost?: number) =>
      loadSnapshot(db, ref, earlierMost),
    markWorkflowStarted: (ref: SubscriptionRef) => markWorkflowStarted(db, ref),
    recordHold: (ref: SubscriptionRef) => recordHold(db, ref),
    endHold: (ref: SubscriptionRef) => endHold(db, ref),
  };
}
