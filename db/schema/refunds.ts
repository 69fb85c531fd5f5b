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
import { REFUND_STATES } from '../../domain/refund.ts';
import type { RefundState } from '../../domain/refund.ts';
import { amountMinor, currency, instant, merchantId, oneOf } from './_columns.ts';
import { paymentIntents } from './payment-intents.ts';

/**
 * A refund of a paid intent or of a late charge, committed before it is sent. Every refund of an intent that is not
 * REFUSED reduces the amount that can still be refunded.
 */
export const refunds = pgTable(
  'refund',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    intentId: text('intent_id').notNull(),
    state: text('state').$type<RefundState>().notNull(),
    amountMinor: amountMinor().notNull(),
    currency: currency().notNull(),
    gatewayKey: text('gateway_key').notNull(),
    gatewayChargeId: text('gateway_charge_id').notNull(),
    /** The gateway's id of the refund; null before the gateway has accepted the refund. */
    gatewayRefundId: text('gateway_refund_id'),
    /**
     * For the refund of a late charge: the attempt of the charge. Such a refund does not count as a refund of
     * the intent.
     */
    lateAttemptId: text('late_attempt_id'),
    reason: text('reason'),
    /** Business time: the time of the subscription's test clock, else real time. */
    createdAt: instant('created_at').notNull(),
    /** Business time of the success. Null before, and if the refund failed after it had succeeded. */
    refundedAt: instant('refunded_at'),
    /** Real time. */
    firstSentAt: instant('first_sent_at'),
    updatedAt: instant('updated_at')
      .notNull()
      .default(sql`now()`),
    /** Real time at which `verify --adopt` copied the row from the gateway's book; null for every other row. */
    adoptedAt: instant('adopted_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    foreignKey({
      columns: [table.merchantId, table.intentId],
      foreignColumns: [paymentIntents.merchantId, paymentIntents.id],
    }),
    check('refund__state__ck', sql`${table.state} in (${oneOf(REFUND_STATES)})`),
    check('refund__amount__ck', sql`${table.amountMinor} between 1 and 9007199254740991`),
    uniqueIndex('refund__gateway_key__uq').on(table.gatewayKey),
    // A late charge is refunded at most once.
    uniqueIndex('refund__late_attempt__uq')
      .on(table.merchantId, table.lateAttemptId)
      .where(sql`${table.lateAttemptId} is not null`),
    index('refund__intent__idx').on(table.merchantId, table.intentId),
    // The periodic sweep finds undecided refunds by this index.
    index('refund__open__idx')
      .on(table.updatedAt)
      .where(sql`${table.state} in ('CREATED', 'SENDING', 'UNKNOWN', 'PENDING', 'REVIEW')`),
  ],
);
