import { sql } from 'drizzle-orm';
import {
  check,
  foreignKey,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import { instant, merchantId, oneOf } from './_columns.ts';
import { subscriptions } from './subscriptions.ts';

export const IMPORT_STATUSES = ['ACTIVE', 'TRIALING'] as const;
export type ImportStatus = (typeof IMPORT_STATUSES)[number];

/** The imported terms, under their wire names. A repeated import must have the same terms. */
export type ImportedTerms = Readonly<Record<string, string | number | null>>;

/**
 * The import of one subscription from another system, under the merchant's own id. The row keeps the state at
 * the import. The subscription's own row changes later.
 */
export const subscriptionImports = pgTable(
  'subscription_import',
  {
    merchantId: merchantId(),
    importId: text('import_id').notNull(),
    subscriptionId: text('subscription_id').notNull(),
    gateway: text('gateway').notNull(),
    /** The gateway's id of the payer; null if the gateway stores the payment method without a payer. */
    gatewayCustomerId: text('gateway_customer_id'),
    terms: jsonb('terms').$type<ImportedTerms>().notNull(),
    /** Status, number of paid cycles and index of the next date at the import. */
    status: text('status').$type<ImportStatus>().notNull(),
    cyclesCharged: integer('cycles_charged').notNull(),
    nextIndex: integer('next_index').notNull(),
    /** Real time. */
    importedAt: instant('imported_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.importId] }),
    foreignKey({
      columns: [table.merchantId, table.subscriptionId],
      foreignColumns: [subscriptions.merchantId, subscriptions.id],
    }),
    uniqueIndex('subscription_import__subscription__uq').on(table.merchantId, table.subscriptionId),
    // Finds the earlier import of a payer.
    index('subscription_import__payer__idx').on(
      table.merchantId,
      table.gateway,
      table.gatewayCustomerId,
    ),
    check('subscription_import__status__ck', sql`${table.status} in (${oneOf(IMPORT_STATUSES)})`),
  ],
);
