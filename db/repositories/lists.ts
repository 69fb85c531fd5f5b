import { and, desc, eq, gte, inArray, lt, or, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import { emailNormalForm } from '../../domain/email.ts';
import type { IntentStatus } from '../../domain/payment-intent.ts';
import type { SubscriptionStatus } from '../../domain/subscription/state.ts';
import type { Db } from '../client.ts';
import { customers } from '../schema/customers.ts';
import { paymentIntents } from '../schema/payments.ts';
import { subscriptions } from '../schema/subscriptions.ts';
import type { Customer } from './customers/customers.ts';
import { selectIntents, withAttempts } from './payments/read.ts';
import type { IntentRecord } from './payments/read.ts';
import { selectSubscriptions } from './subscriptions/read.ts';
import type { SubscriptionView } from './subscriptions/read.ts';

/** The position of a row in a list. Lists are ordered by `createdAt` and then by id, both descending. */
export interface ListPosition {
  createdAt: number;
  id: string;
}

export interface ListQuery {
  merchantId: string;
  limit: number;
  startAt?: number | undefined;
  endAt?: number | undefined;
  /** Only rows after this position. The row at the position may have been deleted. */
  after?: ListPosition | undefined;
}

/** A list ignores a filter whose column it does not have. */
export interface ListFilters {
  customerId?: string | undefined;
  subscriptionId?: string | undefined;
  receiptId?: string | undefined;
  /** In any spelling that has the same `emailNormalForm`. */
  email?: string | undefined;
}

interface ListColumns {
  merchantId: AnyPgColumn;
  createdAt: AnyPgColumn;
  id: AnyPgColumn;
}

export async function listCustomers(
  db: Db,
  query: ListQuery,
  { email }: ListFilters,
): Promise<Customer[]> {
  return db
    .select()
    .from(customers)
    .where(and(inList(customers, query), hasEmail(customers.normalEmail, email)))
    .orderBy(...newestFirst(customers))
    .limit(query.limit);
}

export async function listSubscriptions(
  db: Db,
  query: ListQuery,
  {
    customerId,
    receiptId,
    email,
    status,
  }: ListFilters & { status?: SubscriptionStatus | undefined },
): Promise<SubscriptionView[]> {
  return selectSubscriptions(db)
    .where(
      and(
        inList(subscriptions, query),
        matches(subscriptions.customerId, customerId),
        matches(subscriptions.receiptId, receiptId),
        matches(subscriptions.status, status),
        hasEmail(subscriptions.normalEmail, email),
      ),
    )
    .orderBy(...newestFirst(subscriptions))
    .limit(query.limit);
}

/** Returns the merchant's payment intents, newest first. `status` is the status at `nowAt`. */
export async function listIntents(
  db: Db,
  query: ListQuery,
  filters: ListFilters & { status?: IntentStatus | undefined },
  nowAt: number,
): Promise<IntentRecord[]> {
  const { customerId, subscriptionId, receiptId, email, status } = filters;
  const rows = await selectIntents(db)
    .where(
      and(
        inList(paymentIntents, query),
        matches(paymentIntents.customerId, customerId),
        matches(paymentIntents.subscriptionId, subscriptionId),
        matches(paymentIntents.receiptId, receiptId),
        hasEmail(paymentIntents.normalEmail, email),
        status === undefined ? undefined : hasIntentStatus(status, nowAt),
      ),
    )
    .orderBy(...newestFirst(paymentIntents))
    .limit(query.limit);
  return withAttempts(db, query.merchantId, rows);
}

function inList(table: ListColumns, { merchantId, startAt, endAt, after }: ListQuery) {
  const at = (instant: number) => sql`${new Date(instant).toISOString()}::timestamptz`;
  return and(
    eq(table.merchantId, merchantId),
    startAt === undefined ? undefined : gte(table.createdAt, at(startAt)),
    endAt === undefined ? undefined : lt(table.createdAt, at(endAt)),
    after === undefined
      ? undefined
      : sql`(${table.createdAt}, ${table.id}) < (${at(after.createdAt)}, ${after.id}::text)`,
  );
}

function matches(column: AnyPgColumn, value: string | undefined) {
  return value === undefined ? undefined : eq(column, value);
}

function hasEmail(normalEmail: AnyPgColumn, email: string | undefined) {
  return email === undefined ? undefined : eq(normalEmail, emailNormalForm(email));
}

/** Returns the SQL condition for the status at `nowAt`, by the rule of `intentStatusAt`. */
function hasIntentStatus(status: IntentStatus, nowAt: number) {
  const isUnpaid = inArray(paymentIntents.status, ['CREATED', 'FAILED']);
  const now = sql`${new Date(nowAt).toISOString()}::timestamptz`;
  const isExpired = and(isUnpaid, sql`${paymentIntents.checkoutExpiresAt} <= ${now}`);
  const isRecorded = eq(paymentIntents.status, status);
  if (status === 'CANCELLED') return or(isRecorded, isExpired);
  return and(isRecorded, sql`(${isExpired}) is not true`);
}

function newestFirst(table: ListColumns) {
  return [desc(table.createdAt), desc(table.id)];
}
