import { and, inArray } from 'drizzle-orm';
import { emailNormalForm } from '../../../domain/email.ts';
import type { EventDraft, IntentFacts } from '../../../domain/events.ts';
import { intentIdOfCycle } from '../../../domain/ids.ts';
import type { Settlement } from '../../../domain/settlement.ts';
import { applyAdoption } from '../../../domain/subscription/apply-attempt.ts';
import { intentEvent } from '../../../domain/subscription/change.ts';
import type { CommandResult } from '../../../domain/subscription/commands.ts';
import { stateDifferences } from '../../../domain/subscription/ledger.ts';
import type {
  OpenAttempt,
  OwedCycle,
  SubscriptionRef,
  SubscriptionState,
} from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { paymentAttempts, paymentIntents } from '../../schema/payments.ts';
import { subscriptions } from '../../schema/subscriptions.ts';
import { hasValues, isRecord } from '../records.ts';
import { FACTS, factsOf } from '../payments/events.ts';
import { insertAttempt, OPEN_STATES, setPending, settleAttempt } from './attempts.ts';
import type { Attempt } from './attempts.ts';
import { appendDrafts } from './events.ts';
import type { EventCause } from '../webhooks/outbox.ts';
import { ORDER } from './row.ts';
import type { Order } from './row.ts';
import { moveRow, recordTransition, settleCommand } from './transitions.ts';
import type { Move, NotMoved, Recorded, Transition } from './transitions.ts';

/**
 * The open attempt of `state`, which equals the row's state. `isFresh`: this call opened it, so no process has sent its
 * charge yet.
 */
export type Opened =
  | NotMoved
  | { kind: 'opened'; state: ChargeableState; attempt: Attempt; isFresh: boolean };

/** The transition that opens an attempt, without its new state. The transition has no events. */
export type Opening = Omit<Move, 'state'>;

export interface ChargeableState extends SubscriptionState {
  owed: OwedCycle;
  openAttempt: OpenAttempt;
}

export function isChargeable(state: SubscriptionState): state is ChargeableState {
  return state.owed !== null && state.openAttempt !== null;
}

/**
 * Writes the open attempt as SENDING, in one transaction with the transition `opening` and a missing intent. A repeat
 * finds both as the first call wrote them. After `repeated` or `stale` the caller must not send. `stale`, too, if it
 * opened an adopted attempt instead.
 */
export async function openAttemptRow(
  db: Db,
  state: ChargeableState,
  opening: Opening | null,
): Promise<Opened> {
  try {
    return await db.transaction((tx) => openIn(tx, state, opening));
  } catch (error) {
    if (!(error instanceof AdoptedFirst) || opening === null) throw error;
    const adopted = await openAdopted(db, state, opening.nowAt);
    if (adopted === null) throw error;
    return { ...STALE, state: adopted };
  }
}

async function openIn(tx: Db, state: ChargeableState, opening: Opening | null): Promise<Opened> {
  const moved = opening && (await moveRow(tx, { ...opening, state }));
  if (moved?.kind === 'moved') return writeAttempt(tx, state, moved.order);
  const { state: row, lastTransitionId } = await lockRow(tx, state);
  // Two transitions of one version lead to the same version and to the same number of an attempt.
  const isRecorded = opening
    ? lastTransitionId === opening.transitionId
    : row.version === state.version;
  if (!isRecorded || !isChargeable(row)) return { ...(moved ?? STALE), state: row };
  // The first call may have opened the attempt at an earlier time.
  const isSame = stateDifferences(state, row).length === 0;
  const attempt = await readAttempt(tx, row);
  return { kind: 'opened', state: isSame ? state : row, attempt, isFresh: false };
}

const STALE = { kind: 'stale' } as const;

/**
 * Reads the subscription's row and locks it until the transaction ends. Code that opens or settles an
 * attempt takes this lock first, so that two runs of one subscription cannot deadlock.
 */
export async function lockRow(tx: Db, ref: SubscriptionRef) {
  const [row] = await tx
    .select({
      state: subscriptions.state,
      lastTransitionId: subscriptions.lastTransitionId,
      heldAt: subscriptions.heldAt,
      order: ORDER,
    })
    .from(subscriptions)
    .where(isRecord(subscriptions, ref.merchantId, ref.subscriptionId))
    .for('update');
  if (!row) throw new Error(`no subscription ${ref.subscriptionId}`);
  return row;
}

/** `paymentMethodId`: the method of the attempt that the caller opens at once; null if it opens none. */
export function cycleIntentOf(
  { owed, terms }: SubscriptionState & { owed: OwedCycle },
  createdAt: number,
  paymentMethodId: string | null,
) {
  const { intentId, cycleNumber, amountMinor, dueAt } = owed;
  const { currency, upfrontAmountMinor } = terms;
  const hasUpfrontAmount = upfrontAmountMinor !== null;
  const cycle = { intentId, cycleNumber, amountMinor, currency, createdAt, dueAt };
  return { ...cycle, hasUpfrontAmount, paymentMethodId };
}

/** `adoptedAt`: set if the intent comes from the gateway's book, not from the subscription's run. */
type CycleIntent = ReturnType<typeof cycleIntentOf> & { adoptedAt?: number };

/** Inserts the cycle's intent and returns its event, which the caller must store. Null if the intent exists. */
export async function insertCycleIntent(
  tx: Db,
  order: Order,
  { intentId, hasUpfrontAmount, ...cycle }: CycleIntent,
): Promise<{ created: EventDraft; facts: IntentFacts; cause: EventCause } | null> {
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
  const facts = factsOf(intent, null, hasUpfrontAmount);
  return { created, facts, cause: { key: intentId, dueAt: cycle.dueAt } };
}

/** Opens the attempt of `state` on the cycle's intent, and sets this intent to PENDING. Throws AdoptedFirst. */
async function writeAttempt(tx: Db, state: ChargeableState, order: Order): Promise<Opened> {
  const { merchantId, openAttempt } = state;
  const { attemptNumber, trigger, cause, paymentMethodId, startedAt: createdAt } = openAttempt;
  const intent = cycleIntentOf(state, createdAt, paymentMethodId);
  const { intentId, amountMinor, currency } = intent;
  // Pipelined: the connection executes both statements in this order.
  const [inserted, attempt] = await Promise.all([
    insertCycleIntent(tx, order, intent),
    insertAttempt(tx, {
      merchantId,
      intentId,
      attemptNumber,
      sessionId: openAttempt.sessionId ?? null,
      trigger,
      cause,
      paymentMethodId,
      amountMinor,
      currency,
      createdAt,
    }),
  ]);
  if (inserted) await appendDrafts(tx, order, [inserted.created], inserted.facts, inserted.cause);
  if (!attempt) throw new AdoptedFirst();
  if (!inserted) await setPending(tx, attempt);
  return { kind: 'opened', state, attempt, isFresh: true };
}

/** The gateway's book has a charge of the cycle, whose attempt must be opened instead. */
class AdoptedFirst extends Error {}

/**
 * Opens the attempt of the next cycle that was copied from the gateway's book. Null if there is none, or an attempt is
 * open. The subscription's run must not be newer than the row. `nowAt`: the subscription's own time.
 */
export async function openAdopted(
  db: Db,
  ref: SubscriptionRef,
  nowAt: number,
): Promise<SubscriptionState | null> {
  return db.transaction(async (tx) => {
    const { state } = await lockRow(tx, ref);
    const { merchantId, subscriptionId, cyclesCharged, openAttempt } = state;
    const intentId = intentIdOfCycle(subscriptionId, cyclesCharged + 1);
    const [adopted] = await tx
      .select({ attempt: paymentAttempts, dueAt: paymentIntents.dueAt })
      .from(paymentAttempts)
      .innerJoin(paymentIntents, isRecord(paymentIntents, merchantId, intentId))
      .where(
        and(
          hasValues(paymentAttempts, { merchantId, intentId }),
          inArray(paymentAttempts.state, OPEN_STATES),
        ),
      );
    if (!adopted || openAttempt !== null) return null;
    const { attempt, dueAt } = adopted;
    const charge = { ...attempt, dueAt: dueAt ?? nowAt };
    const change = applyAdoption(state, charge, nowAt, Date.now());
    const transitionId = `adopted:${attempt.id}`;
    await recordTransition(tx, { change, transitionId, command: null, nowAt });
    return change.state;
  });
}

async function readAttempt(
  tx: Db,
  { merchantId, owed: { intentId }, openAttempt: { attemptNumber } }: ChargeableState,
): Promise<Attempt> {
  const [attempt] = await tx
    .select()
    .from(paymentAttempts)
    .where(hasValues(paymentAttempts, { merchantId, intentId, attemptNumber }));
  if (!attempt) throw new Error(`no attempt ${attemptNumber} on ${intentId}`);
  return attempt;
}

/**
 * Writes the outcome of the attempt of `before` and its transition, inside the caller's transaction. `result` is that of
 * the command that requested the attempt. Writes nothing if another process has changed the subscription.
 */
export async function settleCycle(
  tx: Db,
  attempt: Attempt,
  settlement: Settlement,
  {
    transition: { change, ...identity },
    before: { owed, openAttempt },
    result,
  }: { transition: Transition; before: ChargeableState; result: CommandResult | null },
): Promise<Recorded> {
  const { state, effects, events } = change;
  const moved = await moveRow(tx, { ...identity, state, effects });
  if (moved.kind !== 'moved') return moved;
  const hasUpfrontAmount = state.terms.upfrontAmountMinor !== null;
  const facts = await settleAttempt(tx, attempt, settlement, identity.nowAt, hasUpfrontAmount);
  const { commandId } = openAttempt;
  if (result && commandId !== null) await settleCommand(tx, state, commandId, result);
  const cause = { key: attempt.gatewayKey, dueAt: owed.dueAt };
  await appendDrafts(tx, moved.order, events, facts, cause);
  return { kind: 'recorded' };
}
