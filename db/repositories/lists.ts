import { and, desc, eq, getColumns, gte, inArray, isNotNull, lt, or, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { AnyPgColumn, PgSelect } from 'drizzle-orm/pg-core';
import { emailNormalForm } from '../../domain/email.ts';
import type { IntentStatus } from '../../domain/payment-intent.ts';
import type { DeclarationKind } from '../../domain/declaration.ts';
import type { RefundState } from '../../domain/refund.ts';
import type { SubscriptionStatus } from '../../domain/subscription/status.ts';
import type { Db } from '../client.ts';
import { customers, paymentMethods } from '../schema/customers.ts';
import { consents } from '../schema/consents.ts';
import { declarations } from '../schema/declarations.ts';
import { paymentIntents, refunds } from '../schema/payments.ts';
import { subscriptions } from '../schema/subscriptions.ts';
import type { Customer } from './customers/customers.ts';
import type { Consent } from './customers/consents.ts';
import type { DeclarationRow } from './customers/declarations.ts';
import { SAVED_STATUSES } from './customers/payment-methods.ts';
import type { SavedMethod } from './customers/payment-methods.ts';
import { selectIntents, withAttempts } from './payments/read.ts';
import type { IntentRecord } from './payments/read.ts';
import type { Refund } from './payments/refunds.ts';
import { timestamp } from './records.ts';
import { selectSubscriptions } from './subscriptions/row.ts';
import type { SubscriptionView } from './subscriptions/row.ts';

/** What a list is ordered by, newest first. By `settledAt` it has only the rows that have one. */
export const LIST_SORTS = ['createdAt', 'settledAt'] as const;
export type ListSort = (typeof LIST_SORTS)[number];

/** The position of a row in a list, which is ordered by `at` and then by id, both descending. */
export interface ListPosition {
  sort: ListSort;
  at: number;
  id: string;
}

export interface ListQuery {
  merchantId: string;
  limit: number;
  startAt?: number | undefined;
  endAt?: number | undefined;
  settledFromAt?: number | undefined;
  settledUntilAt?: number | undefined;
  sort?: ListSort | undefined;
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
  settledAt?: AnyPgColumn;
  id: AnyPgColumn;
}

export async function listCustomers(
  db: Db,
  query: ListQuery,
  { email }: ListFilters,
): Promise<Customer[]> {
  const rows = db.select().from(customers).$dynamic();
  return listed(rows, customers, query, hasEmail(customers.normalEmail, email));
}

export async function listSubscriptions(
  db: Db,
  query: ListQuery,
  {
    customerId,
    receiptId,
    email,
    status,
  }: ListFilters & { status?: readonly SubscriptionStatus[] | undefined },
): Promise<SubscriptionView[]> {
  return listed(
    selectSubscriptions(db).$dynamic(),
    subscriptions,
    query,
    matches(subscriptions.customerId, customerId),
    matches(subscriptions.receiptId, receiptId),
    isIn(subscriptions.status, status),
    hasEmail(subscriptions.normalEmail, email),
  );
}

const INTENT_COLUMNS = {
  ...getColumns(paymentIntents),
  settledAt: paymentIntents.succeededAt,
};

/** Returns the merchant's payment intents, newest first. `status` is the status at `nowAt`. */
export async function listIntents(
  db: Db,
  query: ListQuery,
  filters: ListFilters & { status?: readonly IntentStatus[] | undefined },
  nowAt: number,
): Promise<IntentRecord[]> {
  const { customerId, subscriptionId, receiptId, email, status } = filters;
  const rows = await listed(
    selectIntents(db).$dynamic(),
    INTENT_COLUMNS,
    query,
    matches(paymentIntents.customerId, customerId),
    matches(paymentIntents.subscriptionId, subscriptionId),
    matches(paymentIntents.receiptId, receiptId),
    hasEmail(paymentIntents.normalEmail, email),
    or(...(status ?? []).map((each) => hasIntentStatus(each, nowAt))),
  );
  return withAttempts(db, query.merchantId, rows);
}

export interface ListedRefund extends Refund {
  settledAt: number | null;
}

const REFUND_COLUMNS = { ...getColumns(refunds), settledAt: refunds.refundedAt };

/** Returns the merchant's refunds, newest first, those of late charges included. */
export async function listRefunds(
  db: Db,
  query: ListQuery,
  {
    intentId,
    status,
  }: { intentId?: string | undefined; status?: readonly RefundState[] | undefined },
): Promise<ListedRefund[]> {
  const rows = db.select(REFUND_COLUMNS).from(refunds).$dynamic();
  const isWanted = and(matches(refunds.intentId, intentId), isIn(refunds.state, status));
  return listed(rows, REFUND_COLUMNS, query, isWanted);
}

export async function listConsents(
  db: Db,
  query: ListQuery,
  { customerId, subscriptionId }: ListFilters,
): Promise<Consent[]> {
  return listed(
    db.select().from(consents).$dynamic(),
    consents,
    query,
    matches(consents.customerId, customerId),
    matches(consents.subscriptionId, subscriptionId),
  );
}

export async function listDeclarations(
  db: Db,
  query: ListQuery,
  { kind }: { kind?: DeclarationKind | undefined },
): Promise<DeclarationRow[]> {
  const rows = db.select().from(declarations).$dynamic();
  return listed(rows, declarations, query, matches(declarations.kind, kind));
}

/** Returns the customer's payment methods, newest first, without PENDING ones. */
export async function listPaymentMethods(
  db: Db,
  query: ListQuery,
  {
    customerId,
    status,
  }: { customerId: string; status?: readonly SavedMethod['status'][] | undefined },
): Promise<SavedMethod[]> {
  const rows = await listed(
    db.select().from(paymentMethods).$dynamic(),
    paymentMethods,
    query,
    eq(paymentMethods.customerId, customerId),
    isIn(paymentMethods.status, status ?? SAVED_STATUSES),
  );
  return rows as SavedMethod[]; // the query omits PENDING methods
}

/** The page of `rows`, newest first. An undefined condition holds for every row. */
function listed<Rows extends PgSelect>(
  rows: Rows,
  table: ListColumns,
  query: ListQuery,
  ...conditions: (SQL | undefined)[]
) {
  return rows
    .where(and(inList(table, query), ...conditions))
    .orderBy(desc(sortColumn(table, query)), desc(table.id))
    .limit(query.limit);
}

function inList(table: ListColumns, query: ListQuery) {
  const { merchantId, startAt, endAt, settledFromAt, settledUntilAt, after } = query;
  const { createdAt, settledAt = createdAt } = table;
  const column = sortColumn(table, query);
  return and(
    eq(table.merchantId, merchantId),
    startAt === undefined ? undefined : gte(createdAt, timestamp(startAt)),
    endAt === undefined ? undefined : lt(createdAt, timestamp(endAt)),
    settledFromAt === undefined ? undefined : gte(settledAt, timestamp(settledFromAt)),
    settledUntilAt === undefined ? undefined : lt(settledAt, timestamp(settledUntilAt)),
    column === createdAt ? undefined : isNotNull(column),
    after === undefined
      ? undefined
      : sql`(${column}, ${table.id}) < (${timestamp(after.at)}, ${after.id}::text)`,
  );
}

function sortColumn({ createdAt, settledAt }: ListColumns, { sort }: ListQuery): AnyPgColumn {
  return sort === 'settledAt' && settledAt ? settledAt : createdAt;
}

function isIn(column: AnyPgColumn, values: readonly string[] | undefined) {
  return values === undefined ? undefined : inArray(column, values);
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
  const isExpired = and(isUnpaid, sql`${paymentIntents.checkoutExpiresAt} <= ${timestamp(nowAt)}`);
  const isRecorded = eq(paymentIntents.status, status);
  if (status === 'CANCELLED') return or(isRecorded, isExpired);
  return and(isRecorded, sql`(${isExpired}) is not true`);
}
