import { eq, sql } from 'drizzle-orm';
import type { Db } from '../../db/client.ts';
import { listCycleAttempts } from '../../db/repositories/payments/cycle-attempts.ts';
import type { CycleAttempt } from '../../db/repositories/payments/cycle-attempts.ts';
import { businessNow } from '../../db/repositories/subscriptions/business-time.ts';
import { listEntries } from '../../db/repositories/subscriptions/row.ts';
import { paymentAttempts, paymentIntents, refunds } from '../../db/schema/payments.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { emailNormalForm } from '../../domain/email.ts';
import { derive } from '../../domain/subscription/ledger.ts';
import { ledgerProblems, openedAtOf } from '../verify/ledger-check.ts';
import type { RecordedCharge } from '../verify/ledger-check.ts';
import type { Explained } from './explanation.ts';

/** No subscription has more: at most 1,200 cycles, each with at most some dozens of attempts. */
const ROWS_MAX = 100_000;

/**
 * Returns the ids of the subscriptions with this receipt or e-mail address, or with a payment that has this intent id,
 * gateway key, receipt, or id of a charge or refund. The id of a subscription is returned without a search.
 */
export async function findSubscriptionIds(db: Db, given: string): Promise<string[]> {
  // The search below reads whole tables.
  if (given.startsWith('sub_')) return [given];
  const email = emailNormalForm(given);
  const rows = await db.execute<{ id: string }>(sql`
    select id from ${subscriptions}
    where receipt_id = ${given} or normal_email = ${email}
    union select subscription_id from ${paymentIntents}
    where subscription_id is not null and (id = ${given} or receipt_id = ${given} or id in (
      select intent_id from ${paymentAttempts} where ${given} in (gateway_charge_id, gateway_key)
      union select intent_id from ${refunds} where ${given} in (id, gateway_refund_id)))
    order by 1`);
  return rows.map(({ id }) => id);
}

/** Reads a subscription from its rows. `until`: as it was at that instant of its own time, derived from its ledger. */
export function readExplained(
  db: Db,
  subscriptionId: string,
  until: number | null,
): Promise<Explained> {
  return db.transaction((tx) => read(tx, subscriptionId, until), {
    isolationLevel: 'repeatable read',
    accessMode: 'read only',
  });
}

async function read(db: Db, subscriptionId: string, until: number | null): Promise<Explained> {
  const [row] = await db
    .select({
      state: subscriptions.state,
      page: subscriptions.productPage,
      heldAt: subscriptions.heldAt,
    })
    .from(subscriptions)
    .where(eq(subscriptions.id, subscriptionId));
  if (!row) throw new Error(`There is no subscription ${subscriptionId}.`);
  const ref = { merchantId: row.state.merchantId, subscriptionId };
  const realNow = Date.now();
  const entries = await listEntries(db, ref, { afterVersion: 0, limit: ROWS_MAX });
  const attempts = await listCycleAttempts(db, ref, { after: 0, limit: ROWS_MAX });
  const productName = row.page?.name ?? null;
  if (until !== null) return asOf(until, row.state, productName, entries, attempts);
  return {
    state: row.state,
    productName,
    heldAt: row.heldAt,
    now: await businessNow(db, ref, realNow),
    realNow,
    entries,
    attempts,
    problems: ledgerProblems(row.state, withoutStatus(entries), attempts.map(recordedCharge)),
  };
}

function asOf(
  until: number,
  identity: Explained['state'],
  productName: string | null,
  allEntries: Explained['entries'],
  allAttempts: readonly CycleAttempt[],
): Explained {
  const entries = allEntries.filter(({ at }) => at <= until);
  const [first] = allEntries;
  if (entries.length === 0 && first) {
    throw new Error(`The subscription was created later: ${new Date(first.at).toISOString()}.`);
  }
  const opened = allAttempts.filter(({ attempt }) => attempt.createdAt <= until);
  const { state } = derive(
    identity,
    withoutStatus(entries),
    opened.map(({ attempt }) => ({ ...attempt, openedAt: openedAtOf(attempt) })),
  );
  const attempts = opened.map(({ attempt, refunds, disputes, ...rest }) => {
    const isOpen =
      state.openAttempt?.attemptNumber === attempt.attemptNumber &&
      state.owed?.intentId === attempt.intentId;
    const open = { state: 'SENDING', errorCode: null, gatewayCode: null, settledAt: null } as const;
    return {
      ...rest,
      attempt: isOpen ? { ...attempt, ...open } : attempt,
      refunds: refunds.filter(({ createdAt }) => createdAt <= until),
      disputes: disputes.filter(({ openedAt }) => openedAt <= until),
    };
  });
  const { jitterMs, jitterFor } = identity;
  const delayed = { ...state, jitterMs, ...(jitterFor !== undefined && { jitterFor }) };
  const now = { now: until, realNow: until };
  return { state: delayed, productName, heldAt: null, ...now, entries, attempts, problems: null };
}

/** As the rules make them. */
const withoutStatus = (entries: Explained['entries']) =>
  entries.map((entry) => ({ ...entry, statusAfter: undefined }));

const recordedCharge = ({ attempt, dueAt }: CycleAttempt): RecordedCharge => ({
  intentId: attempt.intentId,
  attemptNumber: attempt.attemptNumber,
  trigger: attempt.trigger,
  amountMinor: attempt.amountMinor,
  dueAt: dueAt ?? 0,
  cause: attempt.cause,
  createdAt: attempt.createdAt,
});
