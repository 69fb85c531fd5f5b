import { and, desc, eq, inArray, isNotNull, isNull, lt, ne, or, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import { formatInstant } from '../../../domain/calendar.ts';
import type { ReviewOutcome } from '../../../domain/review.ts';
import type { SubscriptionState } from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { paymentAttempts, paymentIntents, paymentReviews, refunds } from '../../schema/payments.ts';
import { areFirst, hasValues, isRecord } from '../records.ts';

export type Review = typeof paymentReviews.$inferSelect;

export interface SubjectRef {
  merchantId: string;
  subjectId: string;
}

/** Opens a manual review, inside the caller's transaction. A repeat changes nothing. */
export async function openReview(tx: Db, ref: SubjectRef, reason: string): Promise<void> {
  await tx
    .insert(paymentReviews)
    .values({ ...ref, reason })
    .onConflictDoNothing();
}

/** Records a voided attempt as `not_charged`. A late-charge watch runs until it is closed. */
export async function watchVoided(tx: Db, ref: SubjectRef): Promise<void> {
  const reason = 'the attempt was voided, and the gateway had not received its charge';
  await tx
    .insert(paymentReviews)
    .values({
      ...ref,
      reason,
      outcome: 'not_charged',
      decidedBy: 'perennial',
      note: reason,
      decidedAt: sql`now()`,
    })
    .onConflictDoNothing();
}

/** Closes the review. Does nothing if there is no review. */
export async function closeReview(tx: Db, ref: SubjectRef): Promise<void> {
  await tx
    .update(paymentReviews)
    .set({ closedAt: sql`now()` })
    .where(and(isReview(ref), isNull(paymentReviews.closedAt)));
}

/** Returns the decision of a review; null if there is none yet. */
export async function findDecision(
  db: Db,
  ref: SubjectRef,
): Promise<(Review & { outcome: ReviewOutcome }) | null> {
  const [row] = await db.select().from(paymentReviews).where(isReview(ref));
  return row?.outcome ? { ...row, outcome: row.outcome } : null;
}

/** True if an operator has decided the open attempt, and no workflow has applied this yet. */
export async function isOpenAttemptDecided(db: Db, state: SubscriptionState): Promise<boolean> {
  const { merchantId, owed, openAttempt } = state;
  if (!owed || openAttempt?.reviewReason === undefined) return false;
  const [attempt] = await db
    .select({ subjectId: paymentAttempts.id })
    .from(paymentAttempts)
    .where(
      hasValues(paymentAttempts, {
        merchantId,
        intentId: owed.intentId,
        attemptNumber: openAttempt.attemptNumber,
      }),
    );
  return attempt !== undefined && (await findDecision(db, { merchantId, ...attempt })) !== null;
}

/** A review with the data of its attempt or refund that an operator needs. */
export type ListedReview = Awaited<ReturnType<typeof select>>[number];

/** Returns reviews without a decision, oldest first; with `settled`, then the settled ones, newest first. */
export async function listReviews(
  db: Db,
  options: { settled: boolean; limit: number },
): Promise<ListedReview[]> {
  return select(db, options.settled ? undefined : isNull(paymentReviews.outcome), options.limit);
}

export async function findReview(db: Db, subjectId: string): Promise<ListedReview | null> {
  const [found] = await select(db, eq(paymentReviews.subjectId, subjectId), 1);
  return found ?? null;
}

async function select(db: Db, which: SQL | undefined, limit: number) {
  const rows = await db
    .select({
      review: paymentReviews,
      attempt: paymentAttempts,
      refund: refunds,
      intent: paymentIntents,
    })
    .from(paymentReviews)
    .leftJoin(
      paymentAttempts,
      isRecord(paymentAttempts, paymentReviews.merchantId, paymentReviews.subjectId),
    )
    .leftJoin(refunds, isRecord(refunds, paymentReviews.merchantId, paymentReviews.subjectId))
    .innerJoin(
      paymentIntents,
      isRecord(
        paymentIntents,
        paymentReviews.merchantId,
        sql`coalesce(${paymentAttempts.intentId}, ${refunds.intentId})`,
      ),
    )
    // A review without a decision is listed only while its attempt or refund is in REVIEW.
    .where(and(which, or(inReview(), sql`${paymentReviews.outcome} is not null`)))
    .orderBy(
      sql`case when ${paymentReviews.outcome} is null then ${paymentReviews.sinceAt} end`,
      desc(paymentReviews.sinceAt),
    )
    .limit(limit);
  return rows.flatMap(({ review, attempt, refund, intent }) => {
    const subject = attempt ?? refund;
    if (!subject) return [];
    return [
      {
        ...review,
        state: subject.state,
        intentId: intent.id,
        subscriptionId: intent.subscriptionId,
        cycleNumber: intent.cycleNumber,
        amountMinor: subject.amountMinor,
        currency: subject.currency,
        gateway: attempt?.gateway ?? null,
        gatewayKey: subject.gatewayKey,
      },
    ];
  });
}

const inReview = () => or(eq(paymentAttempts.state, 'REVIEW'), eq(refunds.state, 'REVIEW'));

export interface Decision {
  outcome: ReviewOutcome;
  gatewayId: string | null;
  code: string | null;
  by: string;
  note: string;
}

export type Decided = { ok: true; review: ListedReview } | { ok: false; message: string };

/** Stores a decision, which a workflow applies later, or refuses it with the reason. */
export async function decideReview(
  db: Db,
  subjectId: string,
  decision: Decision,
): Promise<Decided> {
  const refused = (message: string): Decided => ({ ok: false, message });
  return db.transaction(async (tx): Promise<Decided> => {
    const [held] = await tx
      .select()
      .from(paymentReviews)
      .where(eq(paymentReviews.subjectId, subjectId))
      .for('update');
    if (!held) return refused(`${subjectId} is not in REVIEW and never was.`);
    const found = await findReview(tx, subjectId);
    if (held.decidedAt !== null) {
      const at = formatInstant(held.decidedAt);
      return refused(
        `${subjectId} was settled already: ${held.outcome} by ${held.decidedBy}, ${at}.`,
      );
    }
    if (found?.state !== 'REVIEW') {
      return refused(`${subjectId} is not in REVIEW any more: the gateway has answered.`);
    }
    const owner = await ownerOf(tx, subjectId, decision);
    if (owner) return refused(`${decision.gatewayId} has already settled ${owner}.`);
    const { outcome, gatewayId, code, by, note } = decision;
    await tx
      .update(paymentReviews)
      .set({
        outcome,
        gatewayId,
        code,
        decidedBy: by,
        note,
        decidedAt: sql`now()`,
        updatedAt: sql`now()`,
      })
      .where(isReview(held));
    return { ok: true, review: { ...found, outcome, gatewayId, code, decidedBy: by, note } };
  });
}

/** Returns another attempt or refund that this gateway id already settles; null if none. */
async function ownerOf(
  tx: Db,
  subjectId: string,
  { outcome, gatewayId }: Decision,
): Promise<string | null> {
  if (gatewayId === null) return null;
  const [decided] = await tx
    .select({ id: paymentReviews.subjectId })
    .from(paymentReviews)
    .where(hasValues(paymentReviews, { outcome, gatewayId }));
  if (decided) return decided.id;
  const [table, id] =
    outcome === 'paid'
      ? ([paymentAttempts, paymentAttempts.gatewayChargeId] as const)
      : ([refunds, refunds.gatewayRefundId] as const);
  const [made] = await tx
    .select({ id: table.id })
    .from(table)
    .where(and(eq(id, gatewayId), ne(table.id, subjectId)));
  return made?.id ?? null;
}

/** Takes decided reviews that are not closed, each at most once a minute. */
export async function takeDecidedReviews(db: Db, limit: number): Promise<ListedReview[]> {
  const condition = and(
    isNull(paymentReviews.closedAt),
    isNotNull(paymentReviews.outcome),
    lt(paymentReviews.updatedAt, sql`now() - interval '1 minute'`),
  );
  const order = [paymentReviews.updatedAt];
  const taken = await db
    .update(paymentReviews)
    .set({ updatedAt: sql`now()` })
    .where(areFirst(db, paymentReviews, { condition, order, limit }))
    .returning({ subjectId: paymentReviews.subjectId });
  if (taken.length === 0) return [];
  const ids = taken.map(({ subjectId }) => subjectId);
  return select(db, inArray(paymentReviews.subjectId, ids), limit);
}

function isReview(ref: SubjectRef) {
  return hasValues(paymentReviews, { merchantId: ref.merchantId, subjectId: ref.subjectId });
}
