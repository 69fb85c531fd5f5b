import { sql } from 'drizzle-orm';
import { check, jsonb, pgTable, text } from 'drizzle-orm/pg-core';
import type { Branding } from '../../domain/branding.ts';
import type { PaymentMethodKind } from '../../domain/payment-method.ts';
import type { RetryPlan } from '../../domain/retry-plan.ts';
import { instant, oneOf } from './_columns.ts';

export const MERCHANT_MODES = ['test', 'live'] as const;
export type MerchantMode = (typeof MERCHANT_MODES)[number];

export interface MerchantSettings {
  retryPlan: RetryPlan;
  /** Renewals are spread over this many ms after their due date. Absent: they are not spread. */
  jitterMs?: number;
  /** Payment methods that the hosted pages may offer. Absent: every supported one. */
  paymentMethods?: PaymentMethodKind[];
  /** Absent: the pages show the merchant's name only. */
  branding?: Branding;
}

/**
 * One merchant in one mode. A business with test and live credentials has two rows, so the separation of
 * merchants also separates test records from live records.
 */
export const merchants = pgTable(
  'merchant',
  {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    mode: text('mode').$type<MerchantMode>().notNull(),
    settings: jsonb('settings').$type<MerchantSettings>().notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [check('merchant__mode__ck', sql`${table.mode} in (${oneOf(MERCHANT_MODES)})`)],
);
