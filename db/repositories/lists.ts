import { and, desc, eq, gte, lt, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import type { Db } from '../client.ts';
import { customers } from '../schema/customers.ts';
import { paymentIntents } from '../schema/payment-intents.ts';
import { subscriptions } from '../schema/subscriptions.ts';
import type { Customer } from './customers/customers.ts';
import { selectIntents, withAttempts } from './payments/read.ts';
import type { IntentRecord } from './payments/read.ts';
import { selectSubscriptions } from './subscriptions/read.ts';
import type { SubscriptionView } from './subscriptions/read.ts';

/** The position of a row in a list. Lists are ordered from newest to oldest, then by id. */
export interface ListPosition {
  createdAt: number;
  id: string;
}

/** Selects the rows of a merchant for one page of a list. */
export interface ListQuery {
  merchantId: string;
  limit: number;
  /** Rows created at this time or later. */
  startAt: number | undefined;
  /** Rows created before this time. */
  endAt: number | undefined;
  /** Rows after this position. The row itself may be deleted. */
  after: ListPosition | undefined;
}

/** The columns of the index that every list uses. */
interface ListColumns {
  merchantId: AnyPgColumn;
  createdAt: AnyPgColumn;
  id: AnyPgColumn;
}

/** The merchant's customers, newest first. Rule: D-§7. */
export async function listCustomers(db: Db, query: ListQuery): Promise<Customer[]> {
  return db
    .select()
    .from(customers)
    .where(inList(customers, query))
    .orderBy(...newestFirst(customers))
    .limit(query.limit);
}

/** The merchant's subscriptions, newest first. Rule: D-§7. */
export async function listSubscriptions(db: Db, query: ListQuery): Promise<SubscriptionView[]> {
  return selectSubscriptions(db)
    .where(inList(subscriptions, query))
    .orderBy(...newestFirst(subscriptions))
    .limit(query.limit);
}

/** The merchant's payment intents, newest first. Rule: D-§7. */
export async function listIntents(db: Db, query: ListQuery): Promise<IntentRecord[]> {
  const rows = await selectIntents(db)
    .where(inList(paymentIntents, query))
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

function newestFirst(table: ListColumns) {
  return [desc(table.createdAt), desc(table.id)];
}
