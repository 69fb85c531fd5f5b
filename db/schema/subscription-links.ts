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
import type { Locale } from '../../domain/locales.ts';
import type { CustomerDetails } from '../../domain/customer.ts';
import type { PaymentMethodKind } from '../../domain/payment-method.ts';
import type { Terms } from '../../domain/subscription/state.ts';
import { instant, merchantId } from './_columns.ts';
import { merchants } from './merchants.ts';

export interface ProductPage {
  name?: string | undefined;
  description?: string | undefined;
}

/** The payment that a link to pay once offers. An absent field becomes null or false in the intent. */
export interface LinkPayment {
  amountMinor: number;
  currency: string;
  comments?: string | undefined;
  metadata?: Record<string, string> | undefined;
  /** The methods that the page offers; null if the request named none. */
  paymentMethods: PaymentMethodKind[] | null;
  storeFrontId?: string | undefined;
  tokenise?: boolean | undefined;
}

/**
 * A shareable link: the template of its subscriptions or of its payments, and the number of uses. Opening the link
 * takes no use; submitting the page's form takes one.
 */
export const subscriptionLinks = pgTable(
  'subscription_link',
  {
    merchantId: merchantId().references(() => merchants.id),
    id: text('id').notNull(),
    /** The random part of `shortUrl`. */
    code: text('code').notNull(),
    /** For a link to subscribe. Exactly one of `terms` and `payment` is set. */
    terms: jsonb('terms').$type<Terms>(),
    payment: json('payment').$type<LinkPayment>(),
    customerId: text('customer_id'),
    customerDetails: json('customer_details').$type<CustomerDetails>().notNull(),
    receiptId: text('receipt_id'),
    description: text('description'),
    callbackUrl: text('callback_url'),
    cancelUrl: text('cancel_url'),
    productPage: json('product_page').$type<ProductPage>(),
    phoneNumberRequired: boolean('phone_number_required').notNull(),
    locale: text('locale').$type<Locale>(),
    multiUseLimit: integer('multi_use_limit').notNull(),
    uses: integer('uses').notNull().default(0),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    uniqueIndex('subscription_link__code__uq').on(table.code),
    check('subscription_link__goods__ck', sql`num_nonnulls(${table.terms}, ${table.payment}) = 1`),
    check('subscription_link__uses__ck', sql`${table.uses} between 0 and ${table.multiUseLimit}`),
  ],
);
