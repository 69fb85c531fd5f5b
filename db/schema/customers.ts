import { sql } from 'drizzle-orm';
import { check, index, json, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import type { CustomerDetails } from '../../domain/customer.ts';
import { instant, matchesEmail, merchantId } from './_columns.ts';
import { merchants } from './merchants.ts';

/**
 * A payer. The merchant gives the details. The payer adds missing details on a hosted page. A read returns each
 * detail exactly as given.
 */
export const customers = pgTable(
  'customer',
  {
    merchantId: merchantId().references(() => merchants.id),
    id: text('id').notNull(),
    details: json('details').$type<CustomerDetails>().notNull(),
    normalEmail: text('normal_email'),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    check('customer__normal_email__ck', matchesEmail(table.details, table.normalEmail)),
    // Lists read this index, newest first.
    index('customer__created__idx').on(table.merchantId, table.createdAt, table.id),
    // The list with the filter by e-mail.
    index('customer__normal_email__idx')
      .on(table.merchantId, table.normalEmail)
      .where(sql`${table.normalEmail} is not null`),
  ],
);
