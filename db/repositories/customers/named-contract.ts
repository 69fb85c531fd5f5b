import { and, asc, eq, gt, inArray, isNotNull, or, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import type { NamedContract } from '../../../domain/declaration.ts';
import { emailNormalForm } from '../../../domain/email.ts';
import { isId } from '../../../domain/ids.ts';
import type { SubscriptionState } from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { customers } from '../../schema/customers.ts';
import type { declarations } from '../../schema/declarations.ts';
import { paymentIntents } from '../../schema/payments.ts';
import { subscriptionEntries, subscriptions } from '../../schema/subscriptions.ts';
import { hasValues, isRecord } from '../records.ts';
import { businessNow } from '../subscriptions/business-time.ts';

/** What a payer’s declaration names: a subscription, one of its payments, or a payment of its own. */
export interface Contract extends NamedContract {
  readonly subscriptionId: string | null;
  readonly intentId: string | null;
}

type Naming = Pick<
  typeof declarations.$inferSelect,
  'merchantId' | 'reference' | 'email' | 'createdAt'
>;

/**
 * Returns the contract with this reference and e-mail address: the only one, or of several subscriptions the only one that
 * has begun and not ended; null if there is none.
 */
export async function findContract(
  db: Db,
  { merchantId, reference, email, createdAt }: Naming,
): Promise<Contract | null> {
  const normalEmail = emailNormalForm(email) ?? '';
  const isPayers = (own: AnyPgColumn) =>
    or(eq(own, normalEmail), eq(customers.normalEmail, normalEmail));
  const isNamed = (table: { id: AnyPgColumn; receiptId: AnyPgColumn }, prefix: 'sub' | 'in') =>
    eq(isId(prefix, reference) ? table.id : table.receiptId, reference);
  const found = await db
    .select({ subscriptionId: subscriptions.id, state: subscriptions.state })
    .from(subscriptions)
    .innerJoin(customers, isRecord(customers, subscriptions.merchantId, subscriptions.customerId))
    .where(
      and(
        eq(subscriptions.merchantId, merchantId),
        isNamed(subscriptions, 'sub'),
        isPayers(subscriptions.normalEmail),
      ),
    )
    .limit(CANDIDATES_MOST);
  if (found.length > 0) {
    const living = found.filter(({ state }) => !['CREATED', 'ENDED'].includes(state.status));
    const named = onlyOne(living) ?? onlyOne(found);
    return named && contractOf(db, { ...named, intentId: null }, createdAt);
  }
  const payments = await db
    .select({
      intentId: paymentIntents.id,
      paidAt: paymentIntents.succeededAt,
      cycleNumber: paymentIntents.cycleNumber,
      subscriptionId: paymentIntents.subscriptionId,
      state: subscriptions.state,
    })
    .from(paymentIntents)
    .innerJoin(customers, isRecord(customers, paymentIntents.merchantId, paymentIntents.customerId))
    .leftJoin(
      subscriptions,
      hasValues(subscriptions, {
        merchantId: paymentIntents.merchantId,
        id: paymentIntents.subscriptionId,
      }),
    )
    .where(
      and(
        eq(paymentIntents.merchantId, merchantId),
        isNamed(paymentIntents, 'in'),
        isPayers(paymentIntents.normalEmail),
      ),
    )
    .limit(CANDIDATES_MOST);
  const payment = onlyOne(payments.filter(({ paidAt }) => paidAt !== null)) ?? onlyOne(payments);
  if (payment === null) return null;
  const { intentId, paidAt, cycleNumber, subscriptionId, state } = payment;
  if (cycleNumber !== null && subscriptionId !== null && state !== null) {
    return contractOf(db, { subscriptionId, intentId, state }, createdAt);
  }
  // A charge outside the cycles is a contract of its own.
  return {
    subscriptionId: null,
    intentId,
    state: null,
    concludedAt: paidAt,
    declaredAt: createdAt,
    isPaidSince: false,
  };
}

/** With more contracts of one reference, none is the only one. */
const CANDIDATES_MOST = 20;

function onlyOne<T>(candidates: readonly T[]): T | null {
  return candidates.length === 1 ? (candidates[0] ?? null) : null;
}

async function contractOf(
  db: Db,
  named: { subscriptionId: string; intentId: string | null; state: SubscriptionState },
  createdAt: number,
): Promise<Contract> {
  const { merchantId } = named.state;
  const ref = { merchantId, subscriptionId: named.subscriptionId };
  const [first] = await db
    .select({ kind: subscriptionEntries.kind, at: subscriptionEntries.at })
    .from(subscriptionEntries)
    .where(
      and(
        hasValues(subscriptionEntries, ref),
        inArray(subscriptionEntries.kind, ['trial_begun', 'paid', 'imported']),
      ),
    )
    .orderBy(asc(subscriptionEntries.version))
    .limit(1);
  const paidSince = await db.$count(
    subscriptionEntries,
    and(
      hasValues(subscriptionEntries, { ...ref, kind: 'paid' }),
      gt(subscriptionEntries.recordedAt, createdAt),
    ),
  );
  return {
    ...named,
    concludedAt: first && first.kind !== 'imported' ? first.at : null,
    declaredAt: await businessNow(db, ref, createdAt),
    isPaidSince: paidSince > 0,
  };
}

/** Returns the paid payments of the contract of which money can be refunded, oldest first; at most 100. */
export async function findRefundable(
  tx: Db,
  merchantId: string,
  { subscriptionId, intentId }: Contract,
) {
  const { id, amountMinor, refundedMinor, succeededAt } = paymentIntents;
  const left = sql<number>`${amountMinor} - ${refundedMinor}`.mapWith(Number);
  return tx
    .select({ intentId: id, amountMinor: left })
    .from(paymentIntents)
    .where(
      and(
        eq(paymentIntents.merchantId, merchantId),
        subscriptionId === null
          ? eq(id, intentId ?? '')
          : eq(paymentIntents.subscriptionId, subscriptionId),
        isNotNull(succeededAt),
        sql`${left} > 0`,
      ),
    )
    .orderBy(asc(succeededAt), asc(id))
    .limit(100);
}
