import { index, json, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import type { CustomerDetails } from '../../domain/customer.ts';
import { instant, merchantId } from './_columns.ts';
import { merchants } from './merchants.ts';

/**
 * A payer as the merchant described it. A read returns the details exactly as given. Rule: D-10a.
 * Writers: the API, and `npm run import`.
 */
export const customers = pgTable(
  'customer',
  {
    merchantId: merchantId().references(() => merchants.id),
    id: text('id').notNull(),
    details: json('details').$type<CustomerDetails>().notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    // For lists, newest first.
    index('customer__created__idx').on(table.merchantId, table.createdAt, table.id),
  ],
);
