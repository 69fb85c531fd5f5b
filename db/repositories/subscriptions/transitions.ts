import { and, eq, param, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { Change, Effects } from '../../../domain/subscription/change.ts';
import { ENTRIES_SHOWN } from '../../../domain/subscription/describe.ts';
import type { Snapshot } from '../../../domain/subscription/snapshot.ts';
import type { CommandKind, CommandResult } from '../../../domain/subscription/commands.ts';
import { knownUntil } from '../../../domain/subscription/state.ts';
import type { SubscriptionRef, SubscriptionState } from '../../../domain/subscription/state.ts';
import { inTransaction } from '../../client.ts';
import type { Db } from '../../client.ts';
import { paymentIntents } from '../../schema/payments.ts';
import {
  subscriptionCommands,
  subscriptionEntries,
  subscriptions,
  testClocks,
} from '../../schema/subscriptions.ts';
import { deleteUnusedMethod, setMethodLive } from '../customers/payment-methods.ts';
import { entryRow, latestEntries } from './entries.ts';
import type { EntryRow } from './entries.ts';
import { releaseLinkUse } from './links.ts';
import { appendDrafts } from './events.ts';
import { ORDER, rowOf } from './row.ts';
import type { Order } from './row.ts';
import { hasValues, isRecord, timestamp } from '../records.ts';

/** A version of a subscription: the one of the run that calls. */
export interface VersionRef extends SubscriptionRef {
  version: number;
}

/** A transition to record. `change` leads from version `change.state.version - 1` to the next version. */
export interface Transition {
  change: Change;
  /**
   * The id of the command that caused the transition; `dispute:<id>:<status>` for a dispute; `late:<attempt>` for
   * a late charge; `adopted:<attempt>`; else `<subscription>:<version>`.
   */
  transitionId: string;
  command: { commandId: string; kind: CommandKind; result: CommandResult | null } | null;
  nowAt: number;
}

/**
 * `repeated`: this transition or this command was recorded before. `stale`: another process has changed the
 * row. In both cases the caller continues from the row's `state`.
 */
export type Recorded = { kind: 'recorded' } | NotMoved;
export type NotMoved =
  | { kind: 'repeated'; state: SubscriptionState; result: CommandResult | null }
  | { kind: 'stale'; state: SubscriptionState };

/**
 * Records a transition in one transaction: row, command with result, effects, events. `repeated` or `stale`: nothing
 * was changed. Uses `db` if it is a transaction.
 */
export async function recordTransition(
  db: Db,
  { change: { state, effects, events }, ...identity }: Transition,
): Promise<Recorded> {
  return inTransaction(db, async (tx): Promise<Recorded> => {
    const moved = await moveRow(tx, { ...identity, state, effects });
    if (moved.kind !== 'moved') return moved;
    await appendDrafts(tx, moved.order, events);
    return { kind: 'recorded' };
  });
}

export type Move = Omit<Transition, 'change'> & Omit<Change, 'events'>;

export async function moveRow(
  tx: Db,
  { state, effects, command, transitionId, nowAt }: Move,
): Promise<{ kind: 'moved'; order: Order } | NotMoved> {
  const known = command && (await findCommand(tx, state, command.commandId));
  if (known) return { kind: 'repeated', state: await loadState(tx, state), result: known.result };
  const entry = entryRow(state);
  const move = moveOf(tx, state, transitionId, entry === null);
  const [order] = await (entry ? withEntry(tx, move, entry) : move);
  if (!order) return reasonNotMoved(tx, state, transitionId, command?.result ?? null);
  if (command) {
    const { merchantId, subscriptionId } = state;
    await tx
      .insert(subscriptionCommands)
      .values({ merchantId, subscriptionId, ...command, acceptedAt: nowAt });
  }
  await applyEffects(tx, state, effects);
  return { kind: 'moved', order };
}

function moveOf(tx: Db, state: SubscriptionState, transitionId: string, isOpening: boolean) {
  const row = rowOf(state);
  const wakeAt = isOpening
    ? sql`least(${subscriptions.wakeAt}, ${param(row.wakeAt, subscriptions.wakeAt)})`
    : row.wakeAt;
  return tx
    .update(subscriptions)
    .set({ ...row, wakeAt, lastTransitionId: transitionId, updatedAt: sql`now()` })
    .where(and(isRow(state), eq(subscriptions.version, state.version - 1)))
    .returning(ORDER);
}

/** Executes `move`, and inserts its entry in the same statement if it has moved the row. */
function withEntry(tx: Db, move: ReturnType<typeof moveOf>, entry: NonNullable<EntryRow>) {
  const moved = tx.$with('moved').as(move);
  const { merchantId, subscriptionId, version, at, status, kind, actor, facts } = entry;
  const values = {
    merchantId: sql`${merchantId}::text`.as('merchant_id'),
    subscriptionId: sql`${subscriptionId}::text`.as('subscription_id'),
    version: sql`${version}::int`.as('version'),
    at: timestamp(at).as('at'),
    recordedAt: sql`now()`.as('recorded_at'),
    status: sql`${status}::text`.as('status'),
    kind: sql`${kind}::text`.as('kind'),
    actor: sql`${actor}::text`.as('actor'),
    facts: sql`${sql.param(facts)}::jsonb`.as('facts'),
  };
  const recorded = tx
    .$with('recorded')
    .as(
      tx
        .insert(subscriptionEntries)
        .select(tx.select(values).from(moved))
        .returning({ version: subscriptionEntries.version }),
    );
  return tx.with(moved, recorded).select().from(moved);
}

/** Stores the outcome of a pending command. A repeat changes nothing. */
export async function settleCommand(
  tx: Db,
  ref: SubscriptionRef,
  commandId: string,
  result: CommandResult,
): Promise<void> {
  await tx
    .update(subscriptionCommands)
    .set({ result })
    .where(and(isCommand(ref, commandId), sql`${subscriptionCommands.result} is null`));
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
 * Records the time of the next look-up, so that the sweep does not take the subscription as overdue. The version
 * stays. If the row has another version, returns its state; else null.
 */
export async function recordLookup(
  db: Db,
  state: SubscriptionState,
): Promise<SubscriptionState | null> {
  const recorded = await db
    .update(subscriptions)
    .set({ ...rowOf(state), updatedAt: sql`now()` })
    .where(isVersion(state))
    .returning({ id: subscriptions.id });
  return recorded.length > 0 ? null : loadState(db, state);
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
  return recorded.length > 0 ? null : loadState(db, at);
}

/** Returns the row's state if the row does not have this version; else null. */
export async function findOtherVersion(db: Db, at: VersionRef): Promise<SubscriptionState | null> {
  const state = await loadState(db, at);
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

async function loadState(tx: Db, ref: SubscriptionRef): Promise<SubscriptionState> {
  const [row] = await tx
    .select({ state: subscriptions.state })
    .from(subscriptions)
    .where(isRow(ref));
  if (!row) throw new Error(`no subscription ${ref.subscriptionId}`);
  return row.state;
}

async function reasonNotMoved(
  tx: Db,
  { version, ...ref }: VersionRef,
  transitionId: string,
  result: CommandResult | null,
): Promise<NotMoved> {
  const [row] = await tx
    .select({ state: subscriptions.state, lastTransitionId: subscriptions.lastTransitionId })
    .from(subscriptions)
    .where(isRow(ref));
  if (!row) throw new Error(`no subscription ${ref.subscriptionId}`);
  const isSame = row.state.version === version && row.lastTransitionId === transitionId;
  return isSame
    ? { kind: 'repeated', state: row.state, result }
    : { kind: 'stale', state: row.state };
}

async function applyEffects(tx: Db, ref: SubscriptionRef, effects: Effects): Promise<void> {
  const { merchantId } = ref;
  if (effects.cancelledIntentId !== undefined) {
    await tx
      .update(paymentIntents)
      .set({ status: 'CANCELLED' })
      .where(isRecord(paymentIntents, merchantId, effects.cancelledIntentId));
  }
  if (effects.deletedPaymentMethodId !== undefined) {
    await deleteUnusedMethod(tx, merchantId, effects.deletedPaymentMethodId);
  }
  if (effects.livePaymentMethodId !== undefined) {
    await setMethodLive(tx, merchantId, effects.livePaymentMethodId);
  }
  if (effects.releasesLinkUse) await releaseLinkUse(tx, ref);
}

function isRow(ref: SubscriptionRef) {
  return isRecord(subscriptions, ref.merchantId, ref.subscriptionId);
}

function isVersion(at: VersionRef) {
  return and(isRow(at), eq(subscriptions.version, at.version));
}

function isCommand({ merchantId, subscriptionId }: SubscriptionRef, commandId: string) {
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
