import { sql } from 'drizzle-orm';
import { foreignKey, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { amountMinor, currency, instant, merchantId } from './_columns.ts';
import { paymentAttempts } from './payment-attempts.ts';

/**
 * A gateway charge that was found after its attempt was settled as not paid. The charge pays no intent. The
 * refund whose `lateAttemptId` is this `attemptId` returns the money.
 */
export const lateCharges = pgTable(
  'late_charge',
  {
    merchantId: merchantId(),
    attemptId: text('attempt_id').notNull(),
    gatewayChargeId: text('gateway_charge_id').notNull(),
    amountMinor: amountMinor().notNull(),
    currency: currency().notNull(),
    /** Real time. */
    foundAt: instant('found_at')
      .notNull()
      .default(sql`now()`),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.attemptId] }),
    foreignKey({
      columns: [table.merchantId, table.attemptId],
      foreignColumns: [paymentAttempts.merchantId, paymentAttempts.id],
    }),
    uniqueIndex('late_charge__charge__uq').on(table.merchantId, table.gatewayChargeId),
  ],
);
