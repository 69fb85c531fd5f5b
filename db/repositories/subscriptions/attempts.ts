import { randomBytes } from 'node:crypto';
import { and, eq, getColumns, inArray, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { AnyPgColumn, PgUpdateSetSource } from 'drizzle-orm/pg-core';
import {
  CARD_LIMIT_WINDOW_MS,
  CARD_LIMITS_MAX,
  DEFAULT_CARD_LIMITS,
  limitReached,
  limitText,
} from '../../../domain/card-limits.ts';
import type { ReachedLimit, UnpaidAttempts } from '../../../domain/card-limits.ts';
import { datedAdvice } from '../../../domain/declines.ts';
import { isUnproven, settledBy } from '../../../domain/settlement.ts';
import type { IntentFacts } from '../../../domain/events.ts';
import type { Settlement } from '../../../domain/settlement.ts';
import { newId } from '../../../domain/ids.ts';
import { chargeKey } from '../../../domain/payment-intent.ts';
import type { Db } from '../../client.ts';
import { paymentAttempts, paymentIntents } from '../../schema/payments.ts';
import { paymentMethods } from '../../schema/customers.ts';
import { merchants } from '../../schema/merchants.ts';
import { loadSettings } from '../merchants/settings.ts';
import { FACTS, factsOf } from '../payments/events.ts';
import { closeReview, openReview, watchVoided } from '../payments/reviews.ts';
import { hasValues, isRecord, timestamp } from '../records.ts';

export type Attempt = typeof paymentAttempts.$inferSelect;

/** `state`: given only for a charge of the gateway's book. `endsTrial`: it is the first cycle's, after a trial. */
type NewAttempt = Omit<
  typeof paymentAttempts.$inferInsert,
  'id' | 'gateway' | 'gatewayKey' | 'gatewayMethodId' | 'state' | 'statementSuffix'
> & { state?: 'SENDING' | 'DECLINED'; endsTrial?: boolean };

/** Visa asks for these words on the first charge after a trial. */
const TRIAL_OVER = 'TRIAL OVER';

/** The card's attempt may not start yet. The transaction must be rolled back, because the attempt is in it. */
export class CardLimitReached extends Error {
  override readonly name = 'CardLimitReached';
  readonly limit: ReachedLimit;

  constructor(limit: ReachedLimit) {
    super(limitText(limit));
    this.limit = limit;
  }
}

/**
 * Inserts an attempt as SENDING: if the process dies before the send, the charge is looked up. The caller must hold
 * the lock under which no attempt is open. Null if its number or an open attempt exists. @throws CardLimitReached
 */
export async function insertAttempt(tx: Db, opened: NewAttempt): Promise<Attempt | null> {
  const { merchantId, intentId, attemptNumber, paymentMethodId, createdAt } = opened;
  const card = `${merchantId} ${paymentMethodId}`;
  const suffix = sql`(select settings ->> 'statementSuffix' from ${merchants} where ${eq(merchants.id, merchantId)})`;
  const ofMethod = (column: AnyPgColumn) =>
    sql<string>`(select ${column} from ${paymentMethods} where ${isRecord(paymentMethods, merchantId, paymentMethodId)})`;
  // Pipelined. The insert sees what other transactions with the card's lock have committed.
  const [, [inserted]] = await Promise.all([
    tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${card}, 0))`),
    tx
      .insert(paymentAttempts)
      .values({
        state: 'SENDING',
        ...opened,
        id: newId('att', createdAt, randomBytes),
        gateway: ofMethod(paymentMethods.gateway),
        gatewayKey: chargeKey(intentId, attemptNumber),
        gatewayMethodId: ofMethod(paymentMethods.gatewayMethodId),
        statementSuffix: opened.endsTrial ? TRIAL_OVER : suffix,
      })
      .onConflictDoNothing()
      .returning({ ...getColumns(paymentAttempts), ...unpaidOn(opened) }),
  ]);
  if (!inserted) return null;
  const { declinedAt, undecided, ...attempt } = inserted;
  // The charge of an attempt from the gateway's book was sent before.
  if (opened.state === undefined && declinedAt.length + undecided > 0) {
    const { cardLimits = DEFAULT_CARD_LIMITS } = await loadSettings(tx, merchantId);
    const limit = limitReached({ declinedAt, undecided }, cardLimits, createdAt);
    if (limit) throw new CardLimitReached(limit);
  }
  return attempt;
}

type OnCard = Pick<Attempt, 'merchantId' | 'paymentMethodId' | 'createdAt'>;

/**
 * SQL of what counts of the attempts on the card within 30 days, also later ones: on a test clock, the run of another
 * subscription may be ahead.
 */
function unpaidOn({ merchantId, paymentMethodId, createdAt }: OnCard) {
  const since = timestamp(createdAt - CARD_LIMIT_WINDOW_MS);
  const until = timestamp(createdAt + CARD_LIMIT_WINDOW_MS);
  const onCard = sql`payment_attempt unpaid
    where unpaid.merchant_id = ${merchantId} and unpaid.payment_method_id = ${paymentMethodId}
      and unpaid.state <> 'SUCCEEDED'`;
  const declinedAt = sql<number[]>`array(select unpaid.created_at from ${onCard}
      and unpaid.state = 'DECLINED' and unpaid.settled_by is distinct from 'void'
      and unpaid.created_at > ${since} and unpaid.created_at < ${until}
    order by unpaid.created_at desc limit ${CARD_LIMITS_MAX.per30Days})`;
  return {
    declinedAt: declinedAt.mapWith(paymentAttempts.sentAt),
    undecided: sql<number>`(select count(*)::int from ${onCard} and unpaid.state <> 'DECLINED')`,
  };
}

/** As the next attempt at `createdAt` would count them. */
export async function unpaidAttempts(db: Db, card: OnCard): Promise<UnpaidAttempts> {
  const isMerchant = eq(merchants.id, card.merchantId);
  const [row] = await db.select(unpaidOn(card)).from(merchants).where(isMerchant);
  return row ?? { declinedAt: [], undecided: 0 };
}

/** Sets the intent of a new attempt to PENDING. */
export async function setPending(
  tx: Db,
  { merchantId, intentId, paymentMethodId }: Attempt,
): Promise<void> {
  await tx
    .update(paymentIntents)
    .set({ status: 'PENDING', paymentMethodId, updatedAt: sql`now()` })
    .where(isRecord(paymentIntents, merchantId, intentId));
}

/**
 * Marks the attempt as SENDING, which the caller must do before every send. Returns the stored id of the prepared
 * charge: the first one. `settled`: the caller must not send.
 */
export async function markSending(
  db: Db,
  attempt: Attempt,
  preparedId: string | null,
): Promise<{ gatewayChargeId: string | null } | 'settled'> {
  const { gatewayChargeId } = paymentAttempts;
  const sentAgainAt = sql`array_append(${paymentAttempts.sentAt}, now())`;
  const [sending] = await db
    .update(paymentAttempts)
    .set(
      preparedId === null
        ? { state: 'SENDING', sentAt: sentAgainAt }
        : {
            state: 'SENDING',
            // Without the id no charge can have been sent, so the instant of the insert was not that of a send.
            sentAt: sql`case when ${gatewayChargeId} is null then array[now()] else ${sentAgainAt} end`,
            gatewayChargeId: sql`coalesce(${gatewayChargeId}, ${preparedId})`,
          },
    )
    .where(and(isAttempt(attempt), inArray(paymentAttempts.state, OPEN_STATES)))
    .returning({ gatewayChargeId: paymentAttempts.gatewayChargeId });
  return sending ?? 'settled';
}

/** Notes that the gateway's event named the charge, whose outcome is looked up then. */
export async function noteGatewayEvent(db: Db, attempt: Attempt): Promise<void> {
  await changeAttempt(db, attempt, UNDECIDED_STATES, { heardAt: sql`now()` });
}

const lookupsAfter = ({ withoutOutcome = 0 }: Settlement) =>
  sql`${paymentAttempts.lookups} + ${withoutOutcome}::int`;

/** Records that the latest request found no outcome. Sets the state, because a resend may have left SENDING. */
export async function recordUndecided(
  db: Db,
  attempt: Attempt,
  settlement: UndecidedSettlement,
): Promise<Attempt[]> {
  const from = settlement.kind === 'review' ? UNDECIDED_STATES : OPEN_STATES;
  return changeAttempt(db, attempt, from, {
    state: STATES[settlement.kind],
    reason: settlement.reason,
    lookups: lookupsAfter(settlement),
    unansweredAt: unansweredSince(settlement),
    ...payerColumns(settlement),
    ...(settlement.kind === 'unsent'
      ? { isAccountRefused: settlement.isAccountRefused, sentAt: settlement.sentAt }
      : { isAccountRefused: false }),
  }).returning();
}

type UndecidedSettlement = Exclude<Settlement, { kind: 'succeeded' | 'declined' }>;

/** The first of the requests in a row that had no answer, or that were not sent. Null: the latest had an answer. */
function unansweredSince(settlement: UndecidedSettlement): SQL | null {
  const { state, unansweredAt } = paymentAttempts;
  if (settlement.kind === 'unsent') {
    return sql`case when ${state} = 'UNSENT' then ${unansweredAt} else now() end`;
  }
  if (settlement.kind === 'review' || settlement.unansweredAt === null) return null;
  const since = sql`case when ${state} = 'UNSENT' then null else ${unansweredAt} end`;
  return sql`coalesce(${since}, ${timestamp(settlement.unansweredAt)})`;
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

export const OPEN_STATES = ['SENDING', 'UNSENT', 'UNKNOWN'] as const;

/** SQL condition: the attempt is open on this intent, and not in review. */
export function isOpenOn(merchantId: string, intentId: string) {
  const isOfIntent = hasValues(paymentAttempts, { merchantId, intentId });
  return and(isOfIntent, inArray(paymentAttempts.state, OPEN_STATES));
}

const UNDECIDED_STATES = [...OPEN_STATES, 'REVIEW'] as const;
const STATES = {
  succeeded: 'SUCCEEDED',
  declined: 'DECLINED',
  unsent: 'UNSENT',
  unknown: 'UNKNOWN',
  review: 'REVIEW',
} as const;

/**
 * Writes the outcome of the attempt and its intent, inside the caller's transaction. A settled attempt never changes.
 * Returns the facts of the intent's event if this call settled it. `nowAt` is business time.
 */
export async function settleAttempt(
  tx: Db,
  attempt: Attempt,
  settlement: Settlement,
  nowAt: number,
  hasUpfrontAmount = false,
): Promise<IntentFacts | undefined> {
  const { merchantId, id: subjectId } = attempt;
  const subject = { merchantId, subjectId };
  if (settlement.kind !== 'succeeded' && settlement.kind !== 'declined') {
    const open = await recordUndecided(tx, attempt, settlement);
    if (settlement.kind === 'review' && open.length > 0) {
      await openReview(tx, subject, settlement.reason);
    }
    return undefined;
  }
  const facts = await decideAttempt(tx, attempt, settlement, nowAt, hasUpfrontAmount);
  if (!facts) return undefined;
  // After a decision of a person this changes nothing: the attempt has its review.
  if (isUnproven(settlement)) await watchVoided(tx, subject);
  else if (attempt.state === 'REVIEW') await closeReview(tx, subject);
  return facts;
}

/** Changes attempt and intent in one statement. Returns undefined if the attempt was settled before. */
async function decideAttempt(
  tx: Db,
  attempt: Attempt,
  settlement: Extract<Settlement, { kind: 'succeeded' | 'declined' }>,
  nowAt: number,
  hasUpfrontAmount: boolean,
): Promise<IntentFacts | undefined> {
  const { gatewayChargeId } = settlement;
  const source = settledBy(settlement);
  const isPaid = settlement.kind === 'succeeded';
  const decided = tx.$with('decided').as(
    changeAttempt(tx, attempt, UNDECIDED_STATES, {
      // A prepared charge keeps its id.
      ...(gatewayChargeId === null ? {} : { gatewayChargeId }),
      errorCode: isPaid ? null : settlement.code,
      gatewayCode: isPaid ? null : (settlement.gatewayCode ?? null),
      networkCode: isPaid ? null : (settlement.networkCode ?? null),
      advice: isPaid || !settlement.advice ? null : datedAdvice(settlement.advice, nowAt),
      reason: null,
      lookups: lookupsAfter(settlement),
      unansweredAt: null,
      isAccountRefused: false,
      payerUrl: null,
      state: STATES[settlement.kind],
      settledAt: sql`now()`,
      settledBy: source === 'look_up' ? SEEN_BY_LOOKUP : source,
    }).returning({ id: paymentAttempts.id }),
  );
  const { merchantId, intentId, paymentMethodId } = attempt;
  // If the attempt was settled before, so was its intent, and the intent may have a new attempt by now.
  const [settled] = await tx
    .with(decided)
    .update(paymentIntents)
    .set({
      status: isPaid ? 'SUCCESS' : 'FAILED',
      errorCode: isPaid ? null : settlement.code,
      updatedAt: sql`now()`,
      ...(isPaid ? { succeededAt: nowAt } : {}),
    })
    .from(decided)
    .leftJoin(paymentMethods, isRecord(paymentMethods, merchantId, paymentMethodId))
    .where(isRecord(paymentIntents, merchantId, intentId))
    .returning({ intent: FACTS, method: paymentMethods });
  return settled && factsOf(settled.intent, settled.method, hasUpfrontAmount);
}

const SEEN_BY_LOOKUP = sql`case when ${paymentAttempts.heardAt} is null then 'look_up' else 'event' end`;

function changeAttempt(
  tx: Db,
  attempt: Attempt,
  from: readonly Attempt['state'][],
  change: PgUpdateSetSource<typeof paymentAttempts>,
) {
  return tx
    .update(paymentAttempts)
    .set(change)
    .where(and(isAttempt(attempt), inArray(paymentAttempts.state, from)));
}

function isAttempt(attempt: Pick<Attempt, 'merchantId' | 'id'>) {
  return isRecord(paymentAttempts, attempt.merchantId, attempt.id);
}
