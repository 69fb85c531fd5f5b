import { and, asc, eq, inArray, isNull, ne, sql } from 'drizzle-orm';
import type { ErrorCode } from '../../../domain/errors.ts';
import { isId } from '../../../domain/ids.ts';
import {
  decideRefund,
  REFUSED_BY_GATEWAY,
  refundKey,
  statusAfterRefunds,
  VOIDED,
} from '../../../domain/refund.ts';
import type { RefundOutcome, RefundRef } from '../../../domain/refund.ts';
import type { Db } from '../../client.ts';
import { paymentAttempts, paymentIntents, refunds } from '../../schema/payments.ts';
import { businessNow } from '../subscriptions/business-time.ts';
import { appendIntentEvent } from './events.ts';
import { lockIntent } from './orders.ts';
import { closeReview, openReview } from './reviews.ts';
import { findRecord, hasValues, isRecord } from '../records.ts';

export type Refund = typeof refunds.$inferSelect;

export interface NewRefund extends RefundRef {
  intentId: string;
  /** Null: refund the whole remaining amount. */
  amountMinor: number | null;
  /** Real time. If the intent's subscription has a test clock, the clock's time is recorded instead. */
  nowAt: number;
}

export type InsertedRefund =
  | { kind: 'inserted'; refund: Refund }
  | { kind: 'refused'; code: ErrorCode; message: string };

const OPEN_STATES = ['CREATED', 'SENDING', 'UNKNOWN'] as const;
const UNDECIDED_STATES = [...OPEN_STATES, 'PENDING', 'REVIEW'] as const;

/**
 * Writes a refund inside the caller's transaction. Refuses if the intent is not paid, or its refunds, undecided ones
 * included, would exceed the payment. A repeat with the same id returns the first refund.
 */
export async function insertRefund(tx: Db, order: NewRefund): Promise<InsertedRefund> {
  const { merchantId, refundId, intentId } = order;
  // The lock serialises the refunds of one intent, so that concurrent refunds cannot exceed the amount.
  const intent = isId('in', intentId) ? await lockIntent(tx, { merchantId, intentId }) : null;
  if (!intent) return { kind: 'refused', code: 'resource_not_found', message: 'No such payment.' };
  const known = await findRefund(tx, merchantId, refundId);
  if (known) return { kind: 'inserted', refund: known };
  const claimedMinor = await claimedMinorOf(tx, merchantId, intentId);
  const decision = decideRefund(intent, claimedMinor, order.amountMinor);
  if ('refusal' in decision) {
    return { kind: 'refused', code: 'operation_not_allowed', message: decision.refusal };
  }
  const { gatewayChargeId } = await chargeOf(tx, { merchantId, intentId, lateAttemptId: null });
  if (gatewayChargeId === null) throw new Error(`the charge of ${intentId} has no id`);
  const [refund] = await tx
    .insert(refunds)
    .values({
      merchantId,
      id: refundId,
      intentId,
      state: 'CREATED',
      amountMinor: decision.amountMinor,
      currency: intent.currency,
      gatewayKey: refundKey(refundId),
      gatewayChargeId,
      createdAt: await businessNow(tx, intent, order.nowAt),
    })
    .returning();
  if (!refund) throw new Error('insert returned no row');
  return { kind: 'inserted', refund };
}

/** Returns the sum of the payment's refunds that are not REFUSED. Omits refunds of late charges. */
async function claimedMinorOf(tx: Db, merchantId: string, intentId: string): Promise<number> {
  const [row] = await tx
    .select({ sum: sql<string>`coalesce(sum(${refunds.amountMinor}), 0)` })
    .from(refunds)
    .where(
      and(
        hasValues(refunds, { merchantId, intentId }),
        ne(refunds.state, 'REFUSED'),
        isNull(refunds.lateAttemptId),
      ),
    );
  return Number(row?.sum ?? 0);
}

/** Returns the refunds of the intents, oldest first, those of late charges included. */
export const refundsOf = async (
  db: Db,
  merchantId: string,
  intentIds: readonly string[],
): Promise<Refund[]> =>
  intentIds.length === 0
    ? []
    : db
        .select()
        .from(refunds)
        .where(and(eq(refunds.merchantId, merchantId), inArray(refunds.intentId, intentIds)))
        .orderBy(asc(refunds.createdAt), asc(refunds.id));

export const findRefund = (db: Db, merchantId: string, id: string) =>
  findRecord(db, refunds, merchantId, id);

/** Returns the attempt that made the charge: the intent's successful one, or the one of a late charge. */
export async function chargeOf(
  db: Db,
  {
    merchantId,
    intentId,
    lateAttemptId,
  }: Pick<Refund, 'merchantId' | 'intentId' | 'lateAttemptId'>,
) {
  const [charge] = await db
    .select()
    .from(paymentAttempts)
    .where(
      lateAttemptId === null
        ? hasValues(paymentAttempts, { merchantId, intentId, state: 'SUCCEEDED' })
        : isRecord(paymentAttempts, merchantId, lateAttemptId),
    );
  if (!charge) throw new Error(`${intentId} has no charge to refund`);
  return charge;
}

/** Voids a refund that was never sent. True if it is voided, also by an earlier call. */
export async function withdrawRefund(db: Db, ref: RefundRef): Promise<boolean> {
  const reason = VOIDED;
  await db
    .update(refunds)
    .set({ state: 'REFUSED', reason, updatedAt: sql`now()` })
    .where(and(isRefund(ref), eq(refunds.state, 'CREATED')));
  const refund = await findRefund(db, ref.merchantId, ref.refundId);
  return refund?.state === 'REFUSED' && refund.reason === reason;
}

/** Must precede every send. Null: the refund must not be sent. */
export async function markRefundSending(db: Db, ref: RefundRef): Promise<Refund | null> {
  const [sending] = await db
    .update(refunds)
    .set({
      state: 'SENDING',
      firstSentAt: sql`coalesce(${refunds.firstSentAt}, now())`,
      updatedAt: sql`now()`,
    })
    .where(isOpenRefund(ref))
    .returning();
  return sending ?? null;
}

/** `pending`: decided later. `unsent`: no send had an effect. `hasFailed`: an accepted refund did not reach the payer. */
export type RefundSettlement =
  | { kind: 'refunded'; gatewayRefundId: string }
  | { kind: 'pending'; gatewayRefundId: string }
  | { kind: 'unknown' | 'unsent'; reason: string }
  | { kind: 'refused' | 'review'; reason: string; hasFailed?: true };

/**
 * Records the outcome of a refund in one transaction, with intent and event unless it is a late charge's. A settled
 * refund returns its first outcome; only `hasFailed` changes a succeeded one. `nowAt` is real time.
 */
export async function settleRefund(
  db: Db,
  refund: Refund,
  settlement: RefundSettlement,
  nowAt: number,
): Promise<RefundOutcome> {
  const { merchantId, intentId } = refund;
  return db.transaction(async (tx): Promise<RefundOutcome> => {
    const intent = await lockIntent(tx, { merchantId, intentId });
    const current = await findRefund(tx, merchantId, refund.id);
    if (!intent || !current) throw new Error(`no refund ${refund.id}`);
    const known = refundOutcomeOf(current);
    const isReversed = current.state === 'SUCCEEDED' && hasFailed(settlement);
    if (known && !isReversed) return known;
    const at = await businessNow(tx, intent, nowAt);
    const outcome = await recordOutcome(tx, current, settlement, at);
    if (settlement.kind === 'refunded') {
      await moveIntent(tx, intent, current, { type: 'intent.refunded', at });
    } else if (hasFailed(settlement)) {
      await moveIntent(tx, intent, current, { type: 'intent.refund_failed', at });
    }
    return outcome;
  });
}

function hasFailed(settlement: RefundSettlement): boolean {
  return 'hasFailed' in settlement;
}

/** Does nothing for the refund of a late charge, which the intent does not count. */
async function moveIntent(
  tx: Db,
  intent: typeof paymentIntents.$inferSelect,
  before: Refund,
  { type, at }: { type: 'intent.refunded' | 'intent.refund_failed'; at: number },
): Promise<void> {
  if (before.lateAttemptId !== null) return;
  const { merchantId, id: intentId } = intent;
  const { id: refundId, amountMinor } = before;
  const addedMinor =
    type === 'intent.refunded' ? amountMinor : before.state === 'SUCCEEDED' ? -amountMinor : 0;
  const refundedMinor = intent.refundedMinor + addedMinor;
  const status = statusAfterRefunds(intent.amountMinor, refundedMinor);
  await tx
    .update(paymentIntents)
    .set({ refundedMinor, status, updatedAt: sql`now()` })
    .where(isRecord(paymentIntents, merchantId, intentId));
  await appendIntentEvent(tx, intent, {
    type,
    at,
    intentId,
    status,
    errorCode: null,
    refund: { refundId, amountMinor },
  });
}

/** For each outcome: the refund's next state, and the states that the outcome replaces. */
const OUTCOMES = {
  refunded: { state: 'SUCCEEDED', from: UNDECIDED_STATES },
  refused: { state: 'REFUSED', from: UNDECIDED_STATES },
  review: { state: 'REVIEW', from: [...OPEN_STATES, 'PENDING'] },
  pending: { state: 'PENDING', from: UNDECIDED_STATES },
  unknown: { state: 'UNKNOWN', from: OPEN_STATES },
  unsent: { state: 'CREATED', from: OPEN_STATES },
} as const;

/** Records an outcome in the refund's row and its manual review. The caller must hold the intent's lock. */
async function recordOutcome(
  tx: Db,
  { merchantId, id }: Refund,
  settlement: RefundSettlement,
  at: number,
): Promise<RefundOutcome> {
  const { kind } = settlement;
  const { state, from } = OUTCOMES[kind];
  await tx
    .update(refunds)
    .set({
      state,
      reason: 'reason' in settlement ? settlement.reason : null,
      ...('gatewayRefundId' in settlement && { gatewayRefundId: settlement.gatewayRefundId }),
      refundedAt: kind === 'refunded' ? at : null,
      ...(kind === 'unsent' && { firstSentAt: null }),
      updatedAt: sql`now()`,
    })
    .where(
      and(
        isRefund({ merchantId, refundId: id }),
        inArray(refunds.state, hasFailed(settlement) ? [...from, 'SUCCEEDED'] : [...from]),
      ),
    );
  const subject = { merchantId, subjectId: id };
  switch (settlement.kind) {
    case 'refunded':
      await closeReview(tx, subject);
      return { kind: 'refunded' };
    case 'refused':
      await closeReview(tx, subject);
      return { kind: 'refused', message: settlement.reason };
    case 'review':
      await openReview(tx, subject, settlement.reason);
      return { kind: 'pending', needsPerson: true };
    case 'pending':
      return { kind: 'pending', isAccepted: true };
    case 'unknown':
      return { kind: 'pending' };
    case 'unsent':
      return { kind: 'pending', isUnsent: true };
  }
}

/** Returns the outcome of a settled refund; null while the refund is undecided. */
export function refundOutcomeOf(refund: Refund): RefundOutcome | null {
  if (refund.state === 'SUCCEEDED') return { kind: 'refunded' };
  if (refund.state === 'REFUSED') {
    return { kind: 'refused', message: refund.reason ?? REFUSED_BY_GATEWAY };
  }
  return null;
}

function isRefund(ref: RefundRef) {
  return isRecord(refunds, ref.merchantId, ref.refundId);
}

function isOpenRefund(ref: RefundRef) {
  return and(isRefund(ref), inArray(refunds.state, OPEN_STATES));
}
