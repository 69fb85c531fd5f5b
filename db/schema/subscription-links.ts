import { sql } from 'drizzle-orm';
import {
  boolean,
  check,
  integer,
  json,
  jsonb,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import type { CustomerDetails } from '../../domain/customer.ts';
import type { Terms } from '../../domain/subscription/state.ts';
import { instant, merchantId } from './_columns.ts';
import { merchants } from './merchants.ts';

/** The product that a hosted page shows. Rule: IF-2.8. */
export interface ProductPage {
  name?: string | undefined;
  description?: string | undefined;
}

/**
 * A shareable link: the template of its subscriptions, and the number of uses. Opening the link takes no use;
 * submitting the page's form takes one. Rules: IF-4.4, D-37. Writers: the API; activities release a use.
 */
export const subscriptionLinks = pgTable(
  'subscription_link',
  {
    merchantId: merchantId().references(() => merchants.id),
    id: text('id').notNull(),
    /** The random part of `shortUrl`. */
    code: text('code').notNull(),
    terms: jsonb('terms').$type<Terms>().notNull(),
    customerId: text('customer_id'),
    customerDetails: json('customer_details').$type<CustomerDetails>().notNull(),
    receiptId: text('receipt_id'),
    description: text('description'),
    callbackUrl: text('callback_url'),
    cancelUrl: text('cancel_url'),
    productPage: json('product_page').$type<ProductPage>(),
    phoneNumberRequired: boolean('phone_number_required').notNull(),
    multiUseLimit: integer('multi_use_limit').notNull(),
    uses: integer('uses').notNull().default(0),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    uniqueIndex('subscription_link__code__uq').on(table.code),
    check('subscription_link__uses__ck', sql`${table.uses} between 0 and ${table.multiUseLimit}`),
  ],
);
