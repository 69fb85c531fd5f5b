import { randomBytes } from 'node:crypto';
import { and, eq, inArray, sql } from 'drizzle-orm';
import { isUnproven } from '../../../domain/settlement.ts';
import type { Settlement } from '../../../domain/settlement.ts';
import { newId } from '../../../domain/ids.ts';
import { chargeKey } from '../../../domain/payment-intent.ts';
import { intentEvent } from '../../../domain/subscription/change.ts';
import type { Effects } from '../../../domain/subscription/change.ts';
import type {
  OpenAttempt,
  OwedCycle,
  SubscriptionRef,
  SubscriptionState,
} from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { paymentAttempts } from '../../schema/payment-attempts.ts';
import { paymentIntents } from '../../schema/payment-intents.ts';
import { paymentMethods } from '../../schema/payment-methods.ts';
import { subscriptions } from '../../schema/subscriptions.ts';
import { closeReview, openReview, watchWithdrawn } from '../payments/reviews.ts';
import { appendDrafts } from './events.ts';
import { recordTransition } from './transitions.ts';
import type { Recorded, Transition } from './transitions.ts';
import { isRecord } from '../is-record.ts';

export type Attempt = typeof paymentAttempts.$inferSelect;
export type Opened = Recorded | { kind: 'opened'; attempt: Attempt };

/** The transition that opens an attempt, without its new state. The transition has no events. */
export type Opening = Omit<Transition, 'change'> & { effects: Effects };

/** The state of a subscription with an open attempt. */
export interface ChargeableState extends SubscriptionState {
  owed: OwedCycle;
  openAttempt: OpenAttempt;
}

export function isChargeable(state: SubscriptionState): state is ChargeableState {
  return state.owed !== null && state.openAttempt !== null;
}

/**
 * Writes the row of the open attempt. The caller must do this before it sends the charge. The same
 * transaction records the transition `opening` (null if it is recorded already) and creates the cycle's
 * intent if the intent is missing. A repeat returns the same row.
 *
 * Returns `repeated` or `stale` if another process has changed the subscription. Then the caller must not
 * send the charge.
 */
export async function openAttemptRow(
  db: Db,
  state: ChargeableState,
  opening: Opening | null,
): Promise<Opened> {
  return db.transaction(async (tx) => {
    if (opening) {
      const { effects, ...identity } = opening;
      const transition = { ...identity, change: { state, events: [], effects } };
      const recorded = await recordTransition(tx, transition);
      const goesOn =
        recorded.kind === 'recorded' ||
        (recorded.kind === 'repeated' && recorded.state.version === state.version);
      if (!goesOn) return recorded;
    } else {
      const current = await lockedState(tx, state);
      if (!isSameAttempt(current, state)) return { kind: 'stale', state: current };
    }
    // Insert only after the check above, so that a stale caller inserts no intent and no event.
    const { merchantId, subscriptionId, customerId, owed } = state;
    const isNew = await insertCycleIntent(tx, {
      merchantId,
      subscriptionId,
      id: owed.intentId,
      cycleNumber: owed.cycleNumber,
      customerId,
      amountMinor: owed.amountMinor,
      currency: state.terms.currency,
      createdAt: state.openAttempt.startedAt,
      dueAt: owed.dueAt,
    });
    return { kind: 'opened', attempt: await ensureAttempt(tx, state, isNew) };
  });
}

/**
 * True if `current`, the state in the subscription's row, still has the version of `state` and the same open attempt.
 * Then no other process has recorded a transition in the meantime.
 */
export function isSameAttempt(current: SubscriptionState, state: ChargeableState): boolean {
  return (
    current.version === state.version &&
    current.owed?.cycleNumber === state.owed.cycleNumber &&
    current.openAttempt?.attemptNumber === state.openAttempt.attemptNumber
  );
}

/**
 * Reads the subscription's row and locks it until the transaction ends. Code that opens or settles an
 * attempt takes this lock first, so that two runs of one subscription cannot deadlock.
 */
export async function lockedState(tx: Db, state: SubscriptionRef): Promise<SubscriptionState> {
  const [row] = await tx
    .select({ state: subscriptions.state })
    .from(subscriptions)
    .where(isRecord(subscriptions, state.merchantId, state.subscriptionId))
    .for('update');
  if (!row) throw new Error(`no subscription ${state.subscriptionId}`);
  return row.state;
}

/** The intent of a billing cycle. */
export interface CycleIntent extends SubscriptionRef {
  readonly id: string;
  readonly cycleNumber: number;
  readonly customerId: string;
  readonly amountMinor: number;
  readonly currency: string;
  readonly createdAt: number;
  readonly dueAt: number;
  /** Set if the intent comes from the gateway's book, not from the subscription's run. */
  readonly adoptedAt?: number;
}

/** Inserts the cycle's intent if it is missing. Returns true if this transaction inserted it. Rule: D-40. */
export async function insertCycleIntent(tx: Db, intent: CycleIntent): Promise<boolean> {
  const { merchantId, subscriptionId, id, createdAt } = intent;
  const [terms] = await tx
    .select({
      presentmentCurrency: subscriptions.presentmentCurrency,
      customerDetails: subscriptions.customerDetails,
      normalEmail: subscriptions.normalEmail,
      receiptId: subscriptions.receiptId,
      metadata: subscriptions.metadata,
    })
    .from(subscriptions)
    .where(isRecord(subscriptions, merchantId, subscriptionId));
  if (!terms) throw new Error(`no subscription ${subscriptionId}`);
  const inserted = await tx
    .insert(paymentIntents)
    .values({ ...terms, ...intent, status: 'CREATED' })
    .onConflictDoNothing()
    .returning({ id: paymentIntents.id });
  if (inserted.length === 0) return false;
  const created = intentEvent('intent.created', id, createdAt, 'CREATED');
  await appendDrafts(tx, { merchantId, subscriptionId }, [created]);
  return true;
}

async function ensureAttempt(
  tx: Db,
  state: ChargeableState,
  isNewIntent: boolean,
): Promise<Attempt> {
  const { merchantId, owed, openAttempt } = state;
  const { intentId } = owed;
  const isSame = and(
    eq(paymentAttempts.merchantId, merchantId),
    eq(paymentAttempts.intentId, intentId),
    eq(paymentAttempts.attemptNumber, openAttempt.attemptNumber),
  );
  const [existing] = isNewIntent ? [] : await tx.select().from(paymentAttempts).where(isSame);
  if (existing) return existing;
  return insertAttempt(tx, {
    merchantId,
    intentId,
    attemptNumber: openAttempt.attemptNumber,
    sessionId: openAttempt.sessionId ?? null,
    trigger: openAttempt.trigger,
    paymentMethodId: openAttempt.paymentMethodId,
    amountMinor: owed.amountMinor,
    currency: state.terms.currency,
    createdAt: openAttempt.startedAt,
  });
}

type NewAttempt = Pick<
  typeof paymentAttempts.$inferInsert,
  | 'merchantId'
  | 'intentId'
  | 'attemptNumber'
  | 'commandId'
  | 'sessionId'
  | 'trigger'
  | 'paymentMethodId'
  | 'amountMinor'
  | 'currency'
  | 'createdAt'
>;

/**
 * Inserts an attempt and sets its intent to PENDING. The caller must hold the lock under which it has
 * checked that no attempt is open.
 */
export async function insertAttempt(tx: Db, opened: NewAttempt): Promise<Attempt> {
  const { merchantId, intentId, attemptNumber, paymentMethodId, createdAt } = opened;
  const method = await methodOf(tx, merchantId, paymentMethodId);
  const [attempt] = await tx
    .insert(paymentAttempts)
    .values({
      ...opened,
      ...method,
      id: newId('att', createdAt, randomBytes),
      gatewayKey: chargeKey(intentId, attemptNumber),
      state: 'CREATED',
    })
    .returning();
  if (!attempt) throw new Error('insert returned no row');
  await tx
    .update(paymentIntents)
    .set({ status: 'PENDING', paymentMethodId, updatedAt: sql`now()` })
    .where(isRecord(paymentIntents, merchantId, intentId));
  return attempt;
}

async function methodOf(tx: Db, merchantId: string, id: string) {
  const [method] = await tx
    .select({ gateway: paymentMethods.gateway, gatewayMethodId: paymentMethods.gatewayMethodId })
    .from(paymentMethods)
    .where(isRecord(paymentMethods, merchantId, id));
  if (!method) throw new Error(`no payment method ${id}`);
  return method;
}

/**
 * Marks the attempt as SENDING. The caller must do this before every send, because from then on the gateway
 * may have the charge. Stores `preparedId`, the gateway's id of the prepared charge, unless another process
 * has stored an id before. Returns the stored id, which the caller must send. Returns `settled` if the attempt
 * is settled or in REVIEW; the caller must then not send it.
 */
export async function markSending(
  db: Db,
  attempt: Attempt,
  preparedId: string | null,
): Promise<{ gatewayChargeId: string | null } | 'settled'> {
  const [sending] = await db
    .update(paymentAttempts)
    .set({
      state: 'SENDING',
      firstSentAt: sql`coalesce(${paymentAttempts.firstSentAt}, now())`,
      lastSentAt: sql`now()`,
      ...(preparedId === null
        ? {}
        : { gatewayChargeId: sql`coalesce(${paymentAttempts.gatewayChargeId}, ${preparedId})` }),
    })
    .where(and(isAttempt(attempt), inArray(paymentAttempts.state, OPEN_STATES)))
    .returning({ gatewayChargeId: paymentAttempts.gatewayChargeId });
  return sending ?? 'settled';
}

/**
 * Records that the latest request about an unsettled attempt found no outcome. If the gateway did not answer,
 * stores the time of the request; else stores the page that the gateway named for the payer. Sets the attempt to
 * UNKNOWN, because a resend may have left the attempt in SENDING.
 */
export async function recordUnanswered(
  db: Db,
  attempt: Attempt,
  settlement: Extract<Settlement, { kind: 'unknown' }>,
): Promise<void> {
  await db
    .update(paymentAttempts)
    .set({
      state: 'UNKNOWN',
      unansweredAt: settlement.unansweredAt,
      ...payerColumns(settlement),
    })
    .where(and(isAttempt(attempt), inArray(paymentAttempts.state, OPEN_STATES)));
}

/**
 * Returns the columns with the payer's page and with the time at which the bank first asked. Leaves out the page if
 * the gateway did not answer, so that the stored page stays.
 */
function payerColumns(settlement: Settlement) {
  if (settlement.kind !== 'unknown') return { payerUrl: null };
  if (settlement.unansweredAt !== null) return {};
  const { payerUrl = null } = settlement;
  return payerUrl === null
    ? { payerUrl }
    : { payerUrl, payerAskedAt: sql`coalesce(${paymentAttempts.payerAskedAt}, now())` };
}

export async function findAttempt(
  db: Db,
  ref: Pick<Attempt, 'merchantId' | 'id'>,
): Promise<Attempt> {
  const [attempt] = await db.select().from(paymentAttempts).where(isAttempt(ref));
  if (!attempt) throw new Error(`no attempt ${ref.id}`);
  return attempt;
}

const OPEN_STATES = ['CREATED', 'SENDING', 'UNKNOWN'] as const;
const UNDECIDED_STATES = [...OPEN_STATES, 'REVIEW'] as const;
const STATES = {
  succeeded: 'SUCCEEDED',
  declined: 'DECLINED',
  unknown: 'UNKNOWN',
  review: 'REVIEW',
} as const;

/**
 * Writes the outcome of the attempt and of its intent, inside the caller's transaction. A settled attempt
 * never changes. An attempt in REVIEW changes only if `settlement` is succeeded or declined. `nowAt` is
 * business time: the time of the subscription's test clock, else real time.
 */
export async function settleAttempt(
  tx: Db,
  attempt: Attempt,
  settlement: Settlement,
  nowAt: number,
): Promise<void> {
  const isDecided = settlement.kind === 'succeeded' || settlement.kind === 'declined';
  const changed = await tx
    .update(paymentAttempts)
    .set({
      state: STATES[settlement.kind],
      // A prepared charge keeps its id, also while its outcome is unknown.
      ...(isDecided && settlement.gatewayChargeId !== null
        ? { gatewayChargeId: settlement.gatewayChargeId }
        : {}),
      errorCode: settlement.kind === 'declined' ? settlement.code : null,
      gatewayCode: settlement.kind === 'declined' ? (settlement.gatewayCode ?? null) : null,
      reason: isDecided ? null : settlement.reason,
      ...payerColumns(settlement),
      unansweredAt: settlement.kind === 'unknown' ? settlement.unansweredAt : null,
      settledAt: isDecided ? sql`now()` : null,
    })
    .where(
      and(
        isAttempt(attempt),
        inArray(paymentAttempts.state, isDecided ? UNDECIDED_STATES : OPEN_STATES),
      ),
    )
    .returning({
      merchantId: paymentAttempts.merchantId,
      subjectId: paymentAttempts.id,
      firstSentAt: paymentAttempts.firstSentAt,
    });
  const isWithdrawn = settlement.kind === 'declined' && settlement.isWithdrawn;
  for (const { firstSentAt, ...subject } of changed) {
    if (settlement.kind === 'review') await openReview(tx, subject, settlement.reason);
    // The row is checked again, because another process may have sent the attempt after this caller read it.
    if (isWithdrawn && firstSentAt !== null) await watchWithdrawn(tx, subject);
    if (isDecided && !isUnproven(settlement)) await closeReview(tx, subject);
  }
  // If the attempt was settled before, so was its intent, and the intent may have a new attempt by now.
  if (!isDecided || changed.length === 0) return;
  const isPaid = settlement.kind === 'succeeded';
  await tx
    .update(paymentIntents)
    .set({
      status: isPaid ? 'SUCCESS' : 'FAILED',
      errorCode: isPaid ? null : settlement.code,
      updatedAt: sql`now()`,
      ...(isPaid ? { succeededAt: nowAt } : {}),
    })
    .where(isRecord(paymentIntents, attempt.merchantId, attempt.intentId));
}

function isAttempt(attempt: Pick<Attempt, 'merchantId' | 'id'>) {
  return isRecord(paymentAttempts, attempt.merchantId, attempt.id);
}
