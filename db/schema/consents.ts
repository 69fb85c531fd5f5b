import { index, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import type { Locale } from '../../domain/locales.ts';
import { amountMinor, bytes, childOf, currency, instant, merchantId } from './_columns.ts';
import { customers } from './customers.ts';

/** What a payer agreed to by giving a card on a hosted page: a proof, never deleted. */
export const consents = pgTable(
  'consent',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    customerId: text('customer_id').notNull(),
    sessionId: text('session_id').notNull(),
    /** Exactly one of these three ids is set. */
    subscriptionId: text('subscription_id'),
    intentId: text('intent_id'),
    setupMethodId: text('setup_method_id'),
    locale: text('locale').$type<Locale>().notNull(),
    /** The version of our texts. */
    textVersion: text('text_version').notNull(),
    /** The offer, with terms, amounts and dates, and the sentence about later charges, as the page showed them. */
    shown: text('shown').notNull(),
    /** SHA-256 of `shown`. */
    digest: bytes('digest').notNull(),
    /** The amount that is charged as soon as the card is given: 0 for a trial, null for a card that is only saved. */
    amountMinor: amountMinor(),
    currency: currency(),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    childOf(table, table.customerId, customers),
    // The same words are stored once, although the payer tries several cards.
    uniqueIndex('consent__shown__uq').on(table.merchantId, table.sessionId, table.digest),
    // Lists read these indexes, newest first.
    index('consent__created__idx').on(table.merchantId, table.createdAt, table.id),
    index('consent__customer__idx').on(table.merchantId, table.customerId),
    index('consent__subscription__idx').on(table.merchantId, table.subscriptionId),
  ],
);
