import { sql } from 'drizzle-orm';
import { boolean, check, foreignKey, json, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import type { Locale } from '../../domain/locales.ts';
import type { CustomerDetails } from '../../domain/customer.ts';
import type { PaymentMethodKind } from '../../domain/payment-method.ts';
import { SETUP_METHOD_STATUSES } from '../../domain/setup-method.ts';
import type { SetupMethodStatus } from '../../domain/setup-method.ts';
import { currency, instant, merchantId, oneOf } from './_columns.ts';
import { customers } from './customers.ts';
import { paymentMethods } from './payment-methods.ts';

/**
 * A session in which a payer saves a payment method and pays nothing. After `expiresAt` a session in CREATED
 * counts as CANCELLED, without a change of the row.
 */
export const setupMethods = pgTable(
  'setup_method',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    customerId: text('customer_id').notNull(),
    status: text('status').$type<SetupMethodStatus>().notNull(),
    currency: currency().notNull(),
    paymentMethods: json('payment_methods').$type<PaymentMethodKind[]>().notNull(),
    paymentMethodId: text('payment_method_id'),
    storeFrontId: text('store_front_id'),
    billingDetails: json('billing_details').$type<CustomerDetails>().notNull(),
    callbackUrl: text('callback_url').notNull(),
    metadata: json('metadata').$type<Record<string, string>>(),
    phoneNumberRequired: boolean('phone_number_required').notNull(),
    locale: text('locale').$type<Locale>(),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
    completedAt: instant('completed_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    foreignKey({
      columns: [table.merchantId, table.customerId],
      foreignColumns: [customers.merchantId, customers.id],
    }),
    foreignKey({
      columns: [table.merchantId, table.paymentMethodId],
      foreignColumns: [paymentMethods.merchantId, paymentMethods.id],
    }),
    check('setup_method__status__ck', sql`${table.status} in (${oneOf(SETUP_METHOD_STATUSES)})`),
  ],
);
