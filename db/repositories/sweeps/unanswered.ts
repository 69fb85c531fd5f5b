import { and, eq, isNotNull, isNull, lte, max, ne, or, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import { recheckGapMs } from '../../../domain/lookup-delays.ts';
import type { Db } from '../../client.ts';
import { gatewayHealth } from '../../schema/gateway-health.ts';
import { paymentAttempts } from '../../schema/payment-attempts.ts';
import { paymentIntents } from '../../schema/payment-intents.ts';
import { refunds } from '../../schema/refunds.ts';
import { isRecord } from '../is-record.ts';

/** An attempt or a refund whose outcome is unknown because the gateway did not answer. */
export interface Unanswered {
  table: 'attempt' | 'refund';
  merchantId: string;
  /** The id of the attempt or the refund. */
  id: string;
  intentId: string;
  /** The subscription of an attempt on a billing cycle; else null. */
  subscriptionId: string | null;
  firstSentAt: number | null;
  unansweredAt: number | null;
  rechecks: number;
  /**
   * Key of the attempt's charge, or of the refunded charge. `amountMinor` and `currency` are those of the
   * same charge.
   */
  gatewayKey: string;
  gatewayMethodId: string;
  gatewayChargeId: string | null;
  amountMinor: number;
  currency: string;
}

/** The states are literals, so that Postgres can use the partial indexes of undecided rows. */
const IS_OPEN_ATTEMPT = and(
  sql`${paymentAttempts.state} in ('SENDING', 'UNKNOWN')`,
  isNotNull(paymentAttempts.unansweredAt),
);
const IS_OPEN_REFUND = and(
  sql`${refunds.state} in ('SENDING', 'UNKNOWN')`,
  isNotNull(refunds.unansweredAt),
);
const isOf = (gateway: string) => eq(paymentAttempts.gateway, gateway);

/** A gateway that did not answer about an attempt or a refund which is still undecided. */
export interface UnansweredGateway {
  gateway: string;
  /** The real time of the latest request that the gateway did not answer. */
  unansweredAt: number;
}

/** Returns each gateway that did not answer, once. */
export async function unansweredGateways(db: Db): Promise<UnansweredGateway[]> {
  const { gateway } = paymentAttempts;
  const of = (at: typeof paymentAttempts.unansweredAt | typeof refunds.unansweredAt) => ({
    gateway,
    at: max(at),
  });
  const found = [
    ...(await db
      .select(of(paymentAttempts.unansweredAt))
      .from(paymentAttempts)
      .where(IS_OPEN_ATTEMPT)
      .groupBy(gateway)),
    ...(await db
      .select(of(refunds.unansweredAt))
      .from(refunds)
      .innerJoin(paymentAttempts, IS_REFUNDED_CHARGE)
      .where(IS_OPEN_REFUND)
      .groupBy(gateway)),
  ];
  const latest = new Map<string, number>();
  for (const { gateway: name, at } of found) {
    latest.set(name, Math.max(at ?? 0, latest.get(name) ?? 0));
  }
  return [...latest].map(([name, unansweredAt]) => ({ gateway: name, unansweredAt }));
}

/** Joins the attempt whose charge is refunded. */
const IS_REFUNDED_CHARGE = and(
  eq(paymentAttempts.merchantId, refunds.merchantId),
  eq(paymentAttempts.intentId, refunds.intentId),
  or(
    eq(paymentAttempts.id, refunds.lateAttemptId),
    and(isNull(refunds.lateAttemptId), sql`${paymentAttempts.state} = 'SUCCEEDED'`),
  ),
);

const CHARGE = {
  gatewayKey: paymentAttempts.gatewayKey,
  gatewayMethodId: paymentAttempts.gatewayMethodId,
  gatewayChargeId: paymentAttempts.gatewayChargeId,
  amountMinor: paymentAttempts.amountMinor,
  currency: paymentAttempts.currency,
};

function unansweredAttempts(db: Db) {
  return db
    .select({
      table: sql<'attempt'>`'attempt'`,
      merchantId: paymentAttempts.merchantId,
      id: paymentAttempts.id,
      intentId: paymentAttempts.intentId,
      // The workflow of a subscription makes only the charges of its cycles.
      subscriptionId: sql<string | null>`case when ${paymentIntents.cycleNumber} is not null
        then ${paymentIntents.subscriptionId} end`,
      firstSentAt: paymentAttempts.firstSentAt,
      unansweredAt: paymentAttempts.unansweredAt,
      rechecks: paymentAttempts.rechecks,
      ...CHARGE,
    })
    .from(paymentAttempts)
    .innerJoin(
      paymentIntents,
      isRecord(paymentIntents, paymentAttempts.merchantId, paymentAttempts.intentId),
    );
}

function unansweredRefunds(db: Db) {
  return db
    .select({
      table: sql<'refund'>`'refund'`,
      merchantId: refunds.merchantId,
      id: refunds.id,
      intentId: refunds.intentId,
      subscriptionId: sql<null>`null`,
      firstSentAt: refunds.firstSentAt,
      unansweredAt: refunds.unansweredAt,
      rechecks: refunds.rechecks,
      ...CHARGE,
    })
    .from(refunds)
    .innerJoin(paymentAttempts, IS_REFUNDED_CHARGE);
}

/**
 * Returns the attempt or refund with the oldest unanswered request, and the one of another merchant with the oldest.
 * Returns fewer if there is none.
 */
export async function longestUnasked(db: Db, gateway: string): Promise<Unanswered[]> {
  const first = await longestUnaskedWhere(db, isOf(gateway));
  if (first === undefined) return [];
  const isOther = ne(paymentAttempts.merchantId, first.merchantId);
  const second = await longestUnaskedWhere(db, and(isOf(gateway), isOther));
  return second === undefined ? [first] : [first, second];
}

async function longestUnaskedWhere(
  db: Db,
  condition: SQL | undefined,
): Promise<Unanswered | undefined> {
  const found: Unanswered[] = [
    ...(await unansweredAttempts(db)
      .where(and(IS_OPEN_ATTEMPT, condition))
      .orderBy(paymentAttempts.unansweredAt)
      .limit(1)),
    ...(await unansweredRefunds(db)
      .where(and(IS_OPEN_REFUND, condition))
      .orderBy(refunds.unansweredAt)
      .limit(1)),
  ];
  return found.toSorted((a, b) => (a.unansweredAt ?? 0) - (b.unansweredAt ?? 0))[0];
}

/**
 * Returns at most `limit` attempts and refunds to recheck, in the order of their first send. The last request
 * about each was made at `answeredAt` or earlier and was not answered, and its next recheck is due at `nowAt`.
 */
export async function dueForRecheck(
  db: Db,
  gateway: string,
  { answeredAt, nowAt, limit }: { answeredAt: number; nowAt: number; limit: number },
): Promise<Unanswered[]> {
  const isDue = (row: typeof paymentAttempts | typeof refunds) =>
    and(
      lte(row.unansweredAt, answeredAt),
      or(isNull(row.noRecheckBeforeAt), lte(row.noRecheckBeforeAt, nowAt)),
    );
  const found: Unanswered[] = [
    ...(await unansweredAttempts(db)
      .where(and(IS_OPEN_ATTEMPT, isOf(gateway), isDue(paymentAttempts)))
      .orderBy(paymentAttempts.firstSentAt)
      .limit(limit)),
    ...(await unansweredRefunds(db)
      .where(and(IS_OPEN_REFUND, isOf(gateway), isDue(refunds)))
      .orderBy(refunds.firstSentAt)
      .limit(limit)),
  ];
  return found.toSorted((a, b) => (a.firstSentAt ?? 0) - (b.firstSentAt ?? 0)).slice(0, limit);
}

/** Records a recheck at `nowAt`. The wait until the next recheck grows with each recheck. */
export async function recordRecheck(db: Db, subject: Unanswered, nowAt: number): Promise<void> {
  const { table, merchantId, id } = subject;
  const rechecks = subject.rechecks + 1;
  const noRecheckBeforeAt = nowAt + recheckGapMs(rechecks);
  const row = table === 'attempt' ? paymentAttempts : refunds;
  await db
    .update(row)
    .set({ rechecks, noRecheckBeforeAt })
    .where(isRecord(row, merchantId, id));
}

/** Records an unanswered request about `subject`, so that the sweep's next request is about another row. */
export async function recordSilence(db: Db, subject: Unanswered, nowAt: number): Promise<void> {
  const { table, merchantId, id } = subject;
  const row = table === 'attempt' ? paymentAttempts : refunds;
  await db
    .update(row)
    .set({ unansweredAt: nowAt })
    .where(and(isRecord(row, merchantId, id), isNotNull(row.unansweredAt)));
}

/** Returns when the sweep's last answered request to the gateway began; null if there is no such request. */
export async function lastAnsweredAt(db: Db, gateway: string): Promise<number | null> {
  const [health] = await db.select().from(gatewayHealth).where(eq(gatewayHealth.gateway, gateway));
  return health?.answeredAt ?? null;
}

/** Records whether the gateway answered the sweep's request of `nowAt`. */
export async function recordHealth(
  db: Db,
  gateway: string,
  { isAnswered, nowAt }: { isAnswered: boolean; nowAt: number },
): Promise<void> {
  await db
    .insert(gatewayHealth)
    .values({
      gateway,
      answeredAt: isAnswered ? nowAt : null,
      silentSinceAt: isAnswered ? null : nowAt,
    })
    .onConflictDoUpdate({
      target: gatewayHealth.gateway,
      set: isAnswered
        ? { answeredAt: nowAt, silentSinceAt: null }
        : {
            silentSinceAt: sql`coalesce(${gatewayHealth.silentSinceAt}, excluded.silent_since_at)`,
          },
    });
}
