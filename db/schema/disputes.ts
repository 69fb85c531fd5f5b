import { sql } from 'drizzle-orm';
import {
  check,
  foreignKey,
  index,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import { DISPUTE_STATUSES } from '../../domain/dispute.ts';
import type { DisputeStatus } from '../../domain/dispute.ts';
import { amountMinor, currency, instant, merchantId, oneOf } from './_columns.ts';
import { paymentAttempts } from './payment-attempts.ts';
import { paymentIntents } from './payment-intents.ts';

/**
 * A payer's dispute of a charge, as the gateway last described it. A dispute changes neither the intent nor the
 * status of the subscription.
 */
export const disputes = pgTable(
  'dispute',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    intentId: text('intent_id').notNull(),
    attemptId: text('attempt_id').notNull(),
    gateway: text('gateway').notNull(),
    gatewayDisputeId: text('gateway_dispute_id').notNull(),
    /** The disputed amount, which may differ from the charged amount. */
    amountMinor: amountMinor().notNull(),
    currency: currency().notNull(),
    reason: text('reason').notNull(),
    status: text('status').$type<DisputeStatus>().notNull(),
    /** Real time, from the gateway. */
    openedAt: instant('opened_at').notNull(),
    /** Real time at which we learned that the dispute is no longer OPEN; null before. */
    closedAt: instant('closed_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    foreignKey({
      columns: [table.merchantId, table.intentId],
      foreignColumns: [paymentIntents.merchantId, paymentIntents.id],
    }),
    foreignKey({
      columns: [table.merchantId, table.attemptId],
      foreignColumns: [paymentAttempts.merchantId, paymentAttempts.id],
    }),
    uniqueIndex('dispute__gateway_dispute__uq').on(table.gateway, table.gatewayDisputeId),
    index('dispute__intent__idx').on(table.merchantId, table.intentId),
    check('dispute__status__ck', sql`${table.status} in (${oneOf(DISPUTE_STATUSES)})`),
  ],
);
