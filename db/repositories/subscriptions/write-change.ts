import { and, notExists, param, sql } from 'drizzle-orm';
import { emailNormalForm } from '../../../domain/email.ts';
import type { EventDraft } from '../../../domain/events.ts';
import type { Settlement } from '../../../domain/settlement.ts';
import { intentEvent } from '../../../domain/subscription/change.ts';
import type { Change, Effects } from '../../../domain/subscription/change.ts';
import type { CommandKind, CommandResult } from '../../../domain/subscription/commands.ts';
import { wakeAt } from '../../../domain/subscription/decide.ts';
import type {
  ChargeableState,
  OwedCycle,
  SubscriptionRef,
  SubscriptionState,
} from '../../../domain/subscription/state.ts';
import type { Terms } from '../../../domain/subscription/terms.ts';
import { inTransaction } from '../../client.ts';
import type { Db } from '../../client.ts';
import { paymentAttempts, paymentIntents } from '../../schema/payments.ts';
import {
  subscriptionCommands,
  subscriptionEntries,
  subscriptions,
} from '../../schema/subscriptions.ts';
import { deleteUnusedMethod, setMethodLive } from '../customers/payment-methods.ts';
import { appendDrafts, FACTS, factsOf } from '../payments/events.ts';
import type { EventSource } from '../payments/events.ts';
import { isRecord, timestamp } from '../records.ts';
import { insertAttempt, isOpenOn, recordUndecided, setPending, settleAttempt } from './attempts.ts';
import type { Attempt } from './attempts.ts';
import { releaseLinkUse } from './links.ts';
import { findCommand, isCommand, isVersion, loadRow, ORDER } from './row.ts';
import type { Order } from './row.ts';

/**
 * The only code that writes a subscription's state, its ledger, and the intents and attempts of its cycles. The row comes
 * first: its lock keeps other writers out until the commit.
 */

/** A change to write. It leads from version `change.state.version - 1` to the next version. */
export interface Transition {
  change: Change;
  /**
   * The id of the command that caused the transition; `dispute:<id>:<status>` for a dispute; `late:<attempt>` for
   * a late charge; `adopted:<attempt>`; else `<subscription>:<version>`.
   */
  transitionId: string;
  command: { commandId: string; kind: CommandKind; result: CommandResult | null } | null;
  nowAt: number;
  /**
   * `knownUntil` of the state from which a run computed the change. A replayed run may have the row's version with other
   * instants. Absent: the change was computed from the row.
   */
  beforeAt?: number | undefined;
}

/** Returns the transition of a change that no command caused. */
export function withoutCommand(change: Change, nowAt: number): Transition {
  const { subscriptionId, version } = change.state;
  return { change, transitionId: `${subscriptionId}:${version}`, command: null, nowAt };
}

/** The merchant's order data: the columns that are only stored and returned. */
export type SubscriptionOrder = Omit<
  typeof subscriptions.$inferInsert,
  | keyof (Row & ReturnType<typeof createdWith>)
  | 'normalEmail'
  | 'insertedAt'
  | 'updatedAt'
  | 'workflowStartedAt'
>;

/**
 * What the change writes of the owed cycle. `creates`: the intent, and the row, with its order. `opens`: the open attempt,
 * as SENDING, and a missing intent. `settles`: the outcome of the attempt of `before`; `result` is that of the command
 * that requested the attempt.
 */
export type CycleWrite =
  | { creates: SubscriptionOrder }
  | { opens: true }
  | {
      settles: Attempt;
      settlement: Settlement;
      before: ChargeableState;
      result: CommandResult | null;
    };

/**
 * `repeated`: this transition or this command was recorded before. `stale`: another process has changed the
 * row, or an adopted attempt is open instead of the one to open. In both cases the caller continues from the row's
 * `state`. `opened`: the attempt that the change opened.
 */
export type Written = { kind: 'recorded'; opened?: Attempt } | NotMoved;
export type NotMoved =
  | { kind: 'repeated'; state: SubscriptionState; result: CommandResult | null }
  | { kind: 'stale'; state: SubscriptionState };

/**
 * Writes a change in one transaction: row and ledger, command with result, effects, intent and attempt, events.
 * `repeated` or `stale`: nothing was changed. Uses `db` if it is a transaction.
 */
export async function writeChange(
  db: Db,
  { change: { state, effects, events }, transitionId, command, nowAt, beforeAt }: Transition,
  cycle: CycleWrite | null = null,
): Promise<Written> {
  return inTransaction(db, async (tx): Promise<Written> => {
    const known = command && (await findCommand(tx, state, command.commandId));
    if (known) {
      return { kind: 'repeated', state: (await loadRow(tx, state)).state, result: known.result };
    }
    const [order] = await writeRow(tx, state, { transitionId, beforeAt }, cycle);
    if (!order) return reasonNotMoved(tx, state, transitionId, command?.result ?? null);
    if (command) {
      const { merchantId, subscriptionId } = state;
      await tx
        .insert(subscriptionCommands)
        .values({ merchantId, subscriptionId, ...command, acceptedAt: nowAt });
    }
    await applyEffects(tx, state, effects);
    const written = cycle && (await writeCycle(tx, state, order, nowAt, cycle));
    const drafts = written?.created ? [written.created, ...events] : events;
    await appendDrafts(tx, order, drafts, written?.source);
    return written?.opened ? { kind: 'recorded', opened: written.opened } : { kind: 'recorded' };
  });
}

/** Inserts the row of a new subscription, or updates that of the version before; with its entry in one statement. */
async function writeRow(
  tx: Db,
  state: SubscriptionState,
  { transitionId, beforeAt }: Pick<Transition, 'transitionId' | 'beforeAt'>,
  cycle: CycleWrite | null,
): Promise<Order[]> {
  const entry = entryRow(state);
  const row = { ...rowOf(state), lastTransitionId: transitionId };
  const write =
    cycle && 'creates' in cycle
      ? insertOf(tx, row, cycle.creates)
      : moveOf(tx, row, beforeAt, cycle !== null && 'opens' in cycle, entry === null);
  return entry ? withEntry(tx, write, entry) : write;
}

type Row = ReturnType<typeof rowOf> & { lastTransitionId: string };

function insertOf(tx: Db, row: Row, order: SubscriptionOrder) {
  const normalEmail = emailNormalForm(order.customerDetails.email);
  return tx
    .insert(subscriptions)
    .values({ ...order, ...row, ...createdWith(row.state), normalEmail })
    .returning(ORDER);
}

function moveOf(
  tx: Db,
  row: Row,
  beforeAt: number | undefined,
  opensAttempt: boolean,
  hasNoEntry: boolean,
) {
  const { state } = row;
  const wakeAt = hasNoEntry
    ? sql`least(${subscriptions.wakeAt}, ${param(row.wakeAt, subscriptions.wakeAt)})`
    : row.wakeAt;
  const isBefore = isVersion({ ...state, version: state.version - 1 });
  // An attempt that was adopted from the gateway's book comes before the one to open.
  const open = isOpenOn(state.merchantId, state.owed?.intentId ?? '');
  const others = tx.select({ id: paymentAttempts.id }).from(paymentAttempts).where(open);
  return tx
    .update(subscriptions)
    .set({ ...row, wakeAt, updatedAt: sql`now()` })
    .where(
      and(
        isBefore,
        beforeAt === undefined ? undefined : isKnownUntil(beforeAt),
        opensAttempt ? notExists(others) : undefined,
      ),
    )
    .returning(ORDER);
}

/** SQL of `knownUntil(state) = at`. */
function isKnownUntil(at: number) {
  const instantOf = (path: string) => sql`(${subscriptions.state} #>> ${path})::bigint`;
  return sql`greatest(${instantOf('{latest,at}')}, ${instantOf('{openAttempt,startedAt}')}) = ${at}`;
}

/** Returns the column `state`, and the columns that repeat parts of `state` for queries. */
function rowOf(state: SubscriptionState) {
  return {
    status: state.status,
    version: state.version,
    state,
    amountMinor: state.terms.amountMinor,
    currency: state.terms.currency,
    cycleCount: state.terms.cycleCount,
    cyclesCharged: state.cyclesCharged,
    wakeAt: wakeAt(state),
    // A run that records a state is not held.
    heldAt: null,
  };
}

/** Returns the columns of `state` that never change, and the first value of `clockReachedAt`. */
function createdWith(state: SubscriptionState) {
  const { merchantId, subscriptionId: id, customerId, testClockId, createdAt, terms } = state;
  const clockReachedAt = testClockId === null ? null : createdAt;
  const presentmentCurrency = terms.currency;
  return {
    merchantId,
    id,
    customerId,
    testClockId,
    createdAt,
    clockReachedAt,
    presentmentCurrency,
  };
}

/**
 * Returns the row of the entry that made this version; null if the version only opened an attempt. Ledger rows are never
 * changed or deleted.
 */
function entryRow({ merchantId, subscriptionId, version, status, latest }: SubscriptionState) {
  if (latest.version !== version) return null;
  const { version: _, at, actor, kind, ...facts } = latest;
  return { merchantId, subscriptionId, version, at, status, actor, kind, facts };
}

/** Executes `write`, and inserts its entry in the same statement if it has written the row. */
function withEntry(
  tx: Db,
  write: ReturnType<typeof insertOf> | ReturnType<typeof moveOf>,
  entry: NonNullable<ReturnType<typeof entryRow>>,
) {
  const row = tx.$with('written').as(write);
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
        .select(tx.select(values).from(row))
        .returning({ version: subscriptionEntries.version }),
    );
  return tx.with(row, recorded).select().from(row);
}

async function reasonNotMoved(
  tx: Db,
  { version, ...ref }: SubscriptionState,
  transitionId: string,
  result: CommandResult | null,
): Promise<NotMoved> {
  const row = await loadRow(tx, ref);
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

interface CycleWritten {
  created?: EventDraft | undefined;
  opened?: Attempt | null;
  source?: EventSource | undefined;
}

async function writeCycle(
  tx: Db,
  state: SubscriptionState,
  order: Order,
  nowAt: number,
  cycle: CycleWrite,
): Promise<CycleWritten> {
  if (!('settles' in cycle)) return writeOwedCycle(tx, state, order);
  const { settles: attempt, settlement, before, result } = cycle;
  const hasUpfrontAmount = state.terms.upfrontAmountMinor !== null;
  const facts = await settleAttempt(tx, attempt, settlement, nowAt, hasUpfrontAmount);
  const { commandId } = before.openAttempt;
  if (result && commandId !== null) {
    await tx
      .update(subscriptionCommands)
      .set({ result })
      .where(and(isCommand(state, commandId), sql`${subscriptionCommands.result} is null`));
  }
  return { source: { facts, cause: { key: attempt.gatewayKey, dueAt: before.owed.dueAt } } };
}

/** Inserts the intent of the owed cycle if it is missing, and the open attempt. None is owed during a trial. */
async function writeOwedCycle(
  tx: Db,
  { merchantId, owed, openAttempt: open, terms, createdAt: subscribedAt }: SubscriptionState,
  order: Order,
): Promise<CycleWritten> {
  if (!owed) return {};
  const { intentId, cycleNumber, amountMinor, dueAt } = owed;
  const { currency } = terms;
  const createdAt = open?.startedAt ?? subscribedAt;
  const paymentMethodId = open?.paymentMethodId ?? null;
  const cycle = { intentId, cycleNumber, amountMinor, currency, createdAt, dueAt, paymentMethodId };
  // Pipelined: the connection executes both statements in this order.
  const [inserted, opened] = await Promise.all([
    insertCycleIntent(tx, order, terms, cycle),
    open &&
      insertAttempt(tx, {
        merchantId,
        intentId,
        attemptNumber: open.attemptNumber,
        sessionId: open.sessionId ?? null,
        trigger: open.trigger,
        cause: open.cause,
        description: `${order.receiptId ?? order.subscriptionId}, cycle ${cycleNumber}`,
        endsTrial: terms.trial !== null && cycleNumber === 1,
        paymentMethodId: open.paymentMethodId,
        amountMinor,
        currency,
        createdAt,
      }),
  ]);
  if (open && !opened) throw new Error(`${intentId} has another attempt`);
  if (opened && !inserted) await setPending(tx, opened);
  // The ids of the events of a creation are random.
  const source = open ? inserted?.source : { facts: inserted?.source.facts };
  return { created: inserted?.created, opened, source };
}

/**
 * `paymentMethodId`: the method of the attempt that is opened at once; null if none is. `adoptedAt`: set if the intent
 * comes from the gateway's book, not from the subscription's run.
 */
type CycleIntent = Pick<OwedCycle, 'intentId' | 'cycleNumber' | 'amountMinor' | 'dueAt'> &
  Pick<
    typeof paymentIntents.$inferInsert,
    'currency' | 'createdAt' | 'paymentMethodId' | 'adoptedAt'
  >;

/** Inserts the cycle's intent and returns its event, which the caller must store. Null if the intent exists. */
export async function insertCycleIntent(
  tx: Db,
  order: Order,
  { upfrontAmountMinor }: Pick<Terms, 'upfrontAmountMinor'>,
  { intentId, ...cycle }: CycleIntent,
) {
  const [intent] = await tx
    .insert(paymentIntents)
    .values({
      ...order,
      ...cycle,
      id: intentId,
      normalEmail: emailNormalForm(order.customerDetails.email),
      status: cycle.paymentMethodId === null ? 'CREATED' : 'PENDING',
    })
    .onConflictDoNothing()
    .returning(FACTS);
  if (!intent) return null;
  const created = intentEvent('intent.created', intentId, cycle.createdAt, 'CREATED');
  // The event comes before the first attempt, so it has no card.
  const facts = factsOf(intent, null, upfrontAmountMinor !== null);
  return { created, source: { facts, cause: { key: intentId, dueAt: cycle.dueAt } } };
}

/**
 * Writes that a look-up found no outcome, and the time of the next one, so that the sweep does not take the subscription as
 * overdue. The version stays. If the row has another version, returns its state; else null.
 */
export async function writeLookup(
  db: Db,
  state: SubscriptionState,
  attempt: Attempt,
  settlement: Settlement,
): Promise<SubscriptionState | null> {
  if (settlement.kind !== 'succeeded' && settlement.kind !== 'declined') {
    await recordUndecided(db, attempt, settlement);
  }
  const recorded = await db
    .update(subscriptions)
    .set({ ...rowOf(state), updatedAt: sql`now()` })
    .where(isVersion(state))
    .returning({ id: subscriptions.id });
  return recorded.length > 0 ? null : (await loadRow(db, state)).state;
}
