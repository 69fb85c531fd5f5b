import { and, asc, eq, gt, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import { isId } from '../../../domain/ids.ts';
import type { CommandResult } from '../../../domain/subscription/commands.ts';
import { ENTRIES_SHOWN } from '../../../domain/subscription/describe.ts';
import type { Entry } from '../../../domain/subscription/entries.ts';
import type { Snapshot } from '../../../domain/subscription/snapshot.ts';
import { knownUntil } from '../../../domain/subscription/state.ts';
import type { SubscriptionRef, SubscriptionState } from '../../../domain/subscription/state.ts';
import type { SubscriptionStatus } from '../../../domain/subscription/status.ts';
import type { Db } from '../../client.ts';
import { paymentMethods } from '../../schema/customers.ts';
import {
  subscriptionCommands,
  subscriptionEntries,
  subscriptions,
  testClocks,
} from '../../schema/subscriptions.ts';
import { METHOD_OF_SUBSCRIPTION } from '../customers/payment-methods.ts';
import { hasValues, isRecord } from '../records.ts';

/** A subscription's row, ledger and commands. The notes written here, such as a hold, are no changes: no version. */

export const ORDER = {
  merchantId: subscriptions.merchantId,
  subscriptionId: subscriptions.id,
  customerId: subscriptions.customerId,
  customerDetails: subscriptions.customerDetails,
  presentmentCurrency: subscriptions.presentmentCurrency,
  receiptId: subscriptions.receiptId,
  metadata: subscriptions.metadata,
};

type Row = typeof subscriptions.$inferSelect;
export type Order = Pick<Row, Exclude<keyof typeof ORDER, 'subscriptionId'>> & {
  subscriptionId: string;
};

/**
 * SQL expression: true if the joined subscription has an `upfrontAmount` for its first cycle. False without a
 * subscription.
 */
export const hasUpfrontAmount = sql<boolean>`${subscriptions.state}->'terms'->>'upfrontAmountMinor' is not null`;

/** A subscription as merchants read it: its row and its card. */
export type SubscriptionView = NonNullable<Awaited<ReturnType<typeof findSubscription>>>;

export function selectSubscriptions(db: Db) {
  return db
    .select({
      id: subscriptions.id,
      customerId: subscriptions.customerId,
      status: subscriptions.status,
      state: subscriptions.state,
      presentmentCurrency: subscriptions.presentmentCurrency,
      description: subscriptions.description,
      productPage: subscriptions.productPage,
      metadata: subscriptions.metadata,
      receiptId: subscriptions.receiptId,
      testClockId: subscriptions.testClockId,
      createdAt: subscriptions.createdAt,
      paymentMethod: paymentMethods,
    })
    .from(subscriptions)
    .leftJoin(paymentMethods, METHOD_OF_SUBSCRIPTION);
}

/** Returns the merchant's subscription; null for an unknown id and for another merchant's id. */
export async function findSubscription(db: Db, merchantId: string, subscriptionId: string) {
  if (!isId('sub', subscriptionId)) return null;
  const [row] = await selectSubscriptions(db).where(
    isRecord(subscriptions, merchantId, subscriptionId),
  );
  return row ?? null;
}

export const hasSubscription = async (db: Db, ref: SubscriptionRef): Promise<boolean> =>
  isId('sub', ref.subscriptionId) && (await db.$count(subscriptions, isRow(ref))) > 0;

/**
 * Returns the subscription data that a one-time charge needs, and locks the row `for share` until the
 * transaction ends. Null for an unknown subscription.
 */
export async function findChargeable(tx: Db, merchantId: string, subscriptionId: string) {
  if (!isId('sub', subscriptionId)) return null;
  const [row] = await tx
    .select({
      state: subscriptions.state,
      customerId: subscriptions.customerId,
      customerDetails: subscriptions.customerDetails,
    })
    .from(subscriptions)
    .where(isRecord(subscriptions, merchantId, subscriptionId))
    .for('share');
  return row ?? null;
}

/** A version of a subscription: the one of the run that calls. */
export interface VersionRef extends SubscriptionRef {
  version: number;
}

function isRow(ref: SubscriptionRef) {
  return isRecord(subscriptions, ref.merchantId, ref.subscriptionId);
}

export function isVersion(at: VersionRef) {
  return and(isRow(at), eq(subscriptions.version, at.version));
}

const RECORDED = {
  state: subscriptions.state,
  lastTransitionId: subscriptions.lastTransitionId,
  heldAt: subscriptions.heldAt,
  order: ORDER,
};

/** Reads the subscription's row without a lock. Throws for an unknown subscription. */
export async function loadRow(tx: Db, ref: SubscriptionRef) {
  return existing(await tx.select(RECORDED).from(subscriptions).where(isRow(ref)), ref);
}

/**
 * Reads the subscription's row and locks it until the transaction ends. Code that opens or settles an
 * attempt takes this lock first, so that two runs of one subscription cannot deadlock.
 */
export async function lockRow(tx: Db, ref: SubscriptionRef) {
  return existing(
    await tx.select(RECORDED).from(subscriptions).where(isRow(ref)).for('update'),
    ref,
  );
}

/**
 * As {@link lockRow}, for a change that no run computed. Throws for a held row, which is older than its run: the change
 * would bring it to the version of the run, which would then go on from it.
 */
export async function lockCurrentRow(tx: Db, ref: SubscriptionRef) {
  const row = await lockRow(tx, ref);
  if (row.heldAt) {
    throw new Error(`${ref.subscriptionId} is held, because its row is older than its run`);
  }
  return row;
}

function existing<Row>([row]: Row[], { subscriptionId }: SubscriptionRef): Row {
  if (!row) throw new Error(`no subscription ${subscriptionId}`);
  return row;
}

/** An entry, and the status of the subscription after it. */
export type RecordedEntry = Entry & { statusAfter: SubscriptionStatus };

/** Returns entries after `afterVersion`, oldest first. */
export async function listEntries(
  db: Db,
  { merchantId, subscriptionId }: SubscriptionRef,
  { afterVersion, limit }: { afterVersion: number; limit: number },
): Promise<RecordedEntry[]> {
  const { version, at, status: statusAfter, actor, kind, facts } = subscriptionEntries;
  const isOf = hasValues(subscriptionEntries, { merchantId, subscriptionId });
  const rows = await db
    .select({ version, at, statusAfter, actor, kind, facts })
    .from(subscriptionEntries)
    .where(and(isOf, gt(version, afterVersion)))
    .orderBy(asc(version))
    .limit(limit);
  // A row is only written by `writeChange`.
  return rows.map(({ facts: more, ...row }) => ({ ...row, ...more }) as RecordedEntry);
}

/** SQL for the entry of row `e` as JSON. */
export const ENTRY_JSON = `jsonb_build_object('version', e.version, 'at', (extract(epoch from e.at) * 1000)::bigint,
  'actor', e.actor, 'kind', e.kind) || e.facts`;

/** SQL expression: the latest `count` entries of the selected subscription, oldest first. */
function latestEntries(count: number): SQL<Entry[]> {
  return sql<Entry[]>`(
    select coalesce(json_agg(${sql.raw(ENTRY_JSON)} order by e.version), '[]')
    from (
      select * from ${subscriptionEntries} e
      where e.merchant_id = ${subscriptions.merchantId} and e.subscription_id = ${subscriptions.id}
      order by e.version desc limit ${count}
    ) e
  )`;
}

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
