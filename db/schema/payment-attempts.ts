import { sql } from 'drizzle-orm';
import {
  check,
  foreignKey,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import { ATTEMPT_STATES, ATTEMPT_TRIGGERS } from '../../domain/payment-intent.ts';
import type { AttemptState, AttemptTrigger } from '../../domain/payment-intent.ts';
import { amountMinor, currency, instant, merchantId, oneOf } from './_columns.ts';
import { paymentIntents } from './payment-intents.ts';

/**
 * One attempt to charge an intent. The row is committed before the charge is sent. The row contains the
 * gateway's idempotency key, the same for every send of the attempt.
 */
export const paymentAttempts = pgTable(
  'payment_attempt',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    intentId: text('intent_id').notNull(),
    attemptNumber: integer('attempt_number').notNull(),
    /**
     * The command that requested an attempt outside the billing cycles. A repeat of the command finds the
     * attempt by this id.
     */
    commandId: text('command_id'),
    /** The session of the hosted page on which the payer caused the attempt; null if the payer was absent. */
    sessionId: text('session_id'),
    trigger: text('trigger').$type<AttemptTrigger>().notNull(),
    gateway: text('gateway').notNull(),
    gatewayKey: text('gateway_key').notNull(),
    gatewayMethodId: text('gateway_method_id').notNull(),
    paymentMethodId: text('payment_method_id').notNull(),
    state: text('state').$type<AttemptState>().notNull(),
    /** Copied from the intent. Every send of the attempt has this amount. */
    amountMinor: amountMinor().notNull(),
    currency: currency().notNull(),
    gatewayChargeId: text('gateway_charge_id'),
    errorCode: text('error_code'),
    /** The gateway's own code of a decline. For merchants and operators, never for payers. */
    gatewayCode: text('gateway_code'),
    /** Why the outcome is unknown or needs manual review. */
    reason: text('reason'),
    /** The page on which the payer has to confirm the charge with the bank; null if the payer has nothing to do. */
    payerUrl: text('payer_url'),
    /** Real time at which the bank first asked the payer to confirm the charge; null if it did not ask. */
    payerAskedAt: instant('payer_asked_at'),
    /** Real time at which the payer gave another card instead of a confirmation; null if the payer did not. */
    payerLeftAt: instant('payer_left_at'),
    /** Business time: the time of the subscription's test clock, else real time. */
    createdAt: instant('created_at').notNull(),
    /** Real time of the first and of the last send. */
    firstSentAt: instant('first_sent_at')
      .notNull()
      .default(sql`now()`),
    lastSentAt: instant('last_sent_at')
      .notNull()
      .default(sql`now()`),
    settledAt: instant('settled_at'),
    /** Real time of the latest request, if the gateway did not answer it; else null. */
    unansweredAt: instant('unanswered_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    foreignKey({
      columns: [table.merchantId, table.intentId],
      foreignColumns: [paymentIntents.merchantId, paymentIntents.id],
    }),
    check('payment_attempt__state__ck', sql`${table.state} in (${oneOf(ATTEMPT_STATES)})`),
    check('payment_attempt__trigger__ck', sql`${table.trigger} in (${oneOf(ATTEMPT_TRIGGERS)})`),
    uniqueIndex('payment_attempt__gateway_key__uq').on(table.gatewayKey),
    uniqueIndex('payment_attempt__number__uq').on(
      table.merchantId,
      table.intentId,
      table.attemptNumber,
    ),
    uniqueIndex('payment_attempt__command__uq')
      .on(table.merchantId, table.intentId, table.commandId)
      .where(sql`${table.commandId} is not null`),
    // An intent has at most one undecided attempt.
    uniqueIndex('payment_attempt__one_open__uq')
      .on(table.merchantId, table.intentId)
      .where(sql`${table.state} in ('SENDING', 'UNKNOWN', 'REVIEW')`),
    // An intent is paid at most once.
    uniqueIndex('payment_attempt__one_success__uq')
      .on(table.merchantId, table.intentId)
      .where(sql`${table.state} = 'SUCCEEDED'`),
    // Manual review and the events of gateways find the attempt of a gateway charge by this index.
    index('payment_attempt__charge__idx')
      .on(table.gatewayChargeId)
      .where(sql`${table.gatewayChargeId} is not null`),
    index('payment_attempt__open__idx')
      .on(table.lastSentAt)
      .where(sql`${table.state} in ('SENDING', 'UNKNOWN')`),
  ],
);
