import { sql } from 'drizzle-orm';
import { boolean, index, json, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { DECLARATION_KINDS, DECLARATION_OUTCOMES } from '../../domain/declaration.ts';
import type { Locale } from '../../domain/locales.ts';
import { areListed, bytes, instant, merchantId } from './_columns.ts';
import { merchants } from './merchants.ts';

/** A payment of the contract, with the amount that can still be refunded. */
export interface Refundable {
  intentId: string;
  amountMinor: number;
}

/** What payers declared without login: proofs, never deleted. The columns after `createdAt` are null until it is handled. */
export const declarations = pgTable(
  'declaration',
  {
    merchantId: merchantId().references(() => merchants.id),
    id: text('id').notNull(),
    /** SHA-256 of the confirmation page's token. */
    tokenHash: bytes('token_hash').notNull(),
    kind: text('kind', { enum: DECLARATION_KINDS }).notNull(),
    name: text('name').notNull(),
    email: text('email').notNull(),
    reference: text('reference').notNull(),
    reason: text('reason'),
    endOn: text('end_on'),
    locale: text('locale').$type<Locale>().notNull(),
    /** Real time of the declaration. */
    createdAt: instant('created_at').notNull(),
    outcome: text('outcome', { enum: DECLARATION_OUTCOMES }),
    subscriptionId: text('subscription_id'),
    intentId: text('intent_id'),
    /** Whether it came within the withdrawal period. Null for a cancellation, and if not known. */
    isInPeriod: boolean('is_in_period'),
    /** The payments of the contract that can be refunded. Null for a cancellation. */
    refundable: json('refundable').$type<Refundable[]>(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    uniqueIndex('declaration__token__uq').on(table.tokenHash),
    // Lists read this index, newest first.
    index('declaration__created__idx').on(table.merchantId, table.createdAt, table.id),
    // The sweep finds unhandled declarations by this index.
    index('declaration__open__idx')
      .on(table.createdAt)
      .where(sql`${table.outcome} is null`),
    ...areListed(table.kind, table.outcome),
  ],
);
