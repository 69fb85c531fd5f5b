import { sql } from 'drizzle-orm';
import {
  boolean,
  check,
  index,
  integer,
  json,
  jsonb,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import type { Locale } from '../../domain/locales.ts';
import type { RetryAdvice } from '../../domain/declines.ts';
import type { CustomerDetails } from '../../domain/customer.ts';
import {
  INTENT_KINDS,
  INTENT_STATUSES,
  ATTEMPT_STATES,
  ATTEMPT_TRIGGERS,
  SETTLED_BY,
} from '../../domain/payment-intent.ts';
import type { ChargeCause } from '../../domain/subscription/charge-cause.ts';
import type { PaymentMethodKind } from '../../domain/payment-method.ts';
import {
  amountMinor,
  childOf,
  currency,
  instant,
  instants,
  matchesEmail,
  merchantId,
  areListed,
  realTime,
} from './_columns.ts';
import { subscriptionLinks, subscriptions } from './subscriptions.ts';
import type { ProductPage } from './subscriptions.ts';
import { REFUND_STATES } from '../../domain/refund.ts';
import { REVIEW_OUTCOMES } from '../../domain/review.ts';
import { DISPUTE_STATUSES } from '../../domain/dispute.ts';

/** One payment with a fixed amount, which attempts try to collect. */
export const paymentIntents = pgTable(
  'payment_intent',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    kind: text('kind', { enum: INTENT_KINDS }).notNull().default('cycle'),
    subscriptionId: text('subscription_id'),
    cycleNumber: integer('cycle_number'),
    /** The link that created a hosted payment; null if the merchant created it. */
    linkId: text('link_id'),
    customerId: text('customer_id').notNull(),
    amountMinor: amountMinor().notNull(),
    currency: currency().notNull(),
    presentmentCurrency: currency('presentment_currency').notNull(),
    refundedMinor: amountMinor('refunded_minor').notNull().default(0),
    receiptId: text('receipt_id'),
    description: text('description'),
    /** A merchant's note on a one-time charge or on a link to pay once. */
    comments: text('comments'),
    storeFrontId: text('store_front_id'),
    /** For a hosted payment. A cycle uses its subscription's URLs. */
    callbackUrl: text('callback_url'),
    cancelUrl: text('cancel_url'),
    paymentMethods: json('payment_methods').$type<PaymentMethodKind[]>(),
    phoneNumberRequired: boolean('phone_number_required').notNull().default(false),
    locale: text('locale').$type<Locale>(),
    /** If true, the payment method stays saved for the customer after a successful payment. */
    tokenise: boolean('tokenise').notNull().default(false),
    metadata: json('metadata').$type<Record<string, string>>(),
    productPage: json('product_page').$type<ProductPage>(),
    customerDetails: json('customer_details').$type<CustomerDetails>().notNull(),
    normalEmail: text('normal_email'),
    /** Business time (a test clock's time, else real time), like `dueAt` and `succeededAt`. */
    createdAt: instant('created_at').notNull(),
    dueAt: instant('due_at'),
    /** Real time until which the page of a hosted payment accepts a card; null for every other payment. */
    checkoutExpiresAt: instant('checkout_expires_at'),
    /** Real time at which `verify --adopt` copied the row from the gateway's book; null for every other row. */
    adoptedAt: instant('adopted_at'),
    // A settled payment changes only the following columns. They stand together, as in `subscription`.
    /** The method of the latest attempt. A one-time or tokenised charge has a method before its first attempt. */
    paymentMethodId: text('payment_method_id'),
    status: text('status', { enum: INTENT_STATUSES }).notNull(),
    /** Decline code of the latest declined attempt; null again after success. */
    errorCode: text('error_code'),
    succeededAt: instant('succeeded_at'),
    /** Real time at which the row was last changed, or taken by a sweep. */
    updatedAt: realTime('updated_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    childOf(table, table.subscriptionId, subscriptions),
    childOf(table, table.linkId, subscriptionLinks),
    ...areListed(table.status, table.kind),
    check(
      'payment_intent__refunded__ck',
      sql`${table.refundedMinor} between 0 and ${table.amountMinor}`,
    ),
    check('payment_intent__amount__ck', sql`${table.amountMinor} between 1 and 9007199254740991`),
    check(
      'payment_intent__normal_email__ck',
      matchesEmail(table.customerDetails, table.normalEmail),
    ),
    // A cycle has one intent, even if two transactions create one at once. Also finds a subscription's intents.
    uniqueIndex('payment_intent__subscription_cycle__uq')
      .on(table.merchantId, table.subscriptionId, table.cycleNumber)
      .where(sql`${table.subscriptionId} is not null`),
    // Lists read this index, newest first.
    index('payment_intent__created__idx').on(table.merchantId, table.createdAt, table.id),
    index('payment_intent__succeeded__idx')
      .on(table.merchantId, table.succeededAt, table.id)
      .where(sql`${table.succeededAt} is not null`),
    // Lists with a filter.
    index('payment_intent__receipt__idx')
      .on(table.merchantId, table.receiptId)
      .where(sql`${table.receiptId} is not null`),
    index('payment_intent__normal_email__idx')
      .on(table.merchantId, table.normalEmail)
      .where(sql`${table.normalEmail} is not null`),
    // The periodic sweep finds undecided payments outside the billing cycles. Omits hosted payments in CREATED, because
    // a hosted payment stays in CREATED if the payer never pays.
    index('payment_intent__open__idx')
      .on(table.updatedAt)
      .where(
        sql`${table.kind} <> 'cycle' and ${table.status} in ('CREATED', 'PENDING') and (${table.kind} <> 'hosted' or ${table.status} = 'PENDING')`,
      ),
    // Finds the uses of a link whose payment was not made in time.
    index('payment_intent__link__idx')
      .on(table.merchantId, table.linkId, table.checkoutExpiresAt)
      .where(sql`${table.linkId} is not null and ${table.status} in ('CREATED', 'FAILED')`),
    index('payment_intent__customer__idx').on(table.merchantId, table.customerId),
  ],
);

/** One attempt, committed before its charge is sent. Every send has the same gateway key. */
export const paymentAttempts = pgTable(
  'payment_attempt',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    intentId: text('intent_id').notNull(),
    attemptNumber: integer('attempt_number').notNull(),
    /** For attempts outside the billing cycles: a repeat of the command finds the attempt. */
    commandId: text('command_id'),
    /** The session of the hosted page on which the payer caused the attempt; null if the payer was absent. */
    sessionId: text('session_id'),
    trigger: text('trigger', { enum: ATTEMPT_TRIGGERS }).notNull(),
    gateway: text('gateway').notNull(),
    gatewayKey: text('gateway_key').notNull(),
    gatewayMethodId: text('gateway_method_id').notNull(),
    paymentMethodId: text('payment_method_id').notNull(),
    /** Copied from the intent. Every send of the attempt has this amount. */
    amountMinor: amountMinor().notNull(),
    currency: currency().notNull(),
    /** What the gateway shows to the merchant, and the payer's bank to the payer. Every send has the same. */
    description: text('description'),
    statementSuffix: text('statement_suffix'),
    /** The gateway's own code of a decline. For merchants and operators, never for payers. */
    gatewayCode: text('gateway_code'),
    /** The code of the card network or the bank of a decline. */
    networkCode: text('network_code'),
    /** What the bank advised about another try; null if nothing. Its instant is business time. */
    advice: jsonb('advice').$type<RetryAdvice>(),
    /** Why the charge could not be sent, or its outcome is unknown or needs manual review. */
    reason: text('reason'),
    /** True if the gateway refused the latest send because of the merchant's account. */
    isAccountRefused: boolean('is_account_refused').notNull().default(false),
    /** The page on which the payer has to confirm the charge with the bank; null if the payer has nothing to do. */
    payerUrl: text('payer_url'),
    /** Real time at which the bank first asked the payer to confirm the charge; null if it did not ask. */
    payerAskedAt: instant('payer_asked_at'),
    /** Real time at which the payer gave another card instead of a confirmation; null if the payer did not. */
    payerLeftAt: instant('payer_left_at'),
    /** Business time: the time of the subscription's test clock, else real time. */
    createdAt: instant('created_at').notNull(),
    /** Why the attempt on a billing cycle was opened; null outside the cycles and for a decline from the gateway's book. */
    cause: jsonb('cause').$type<ChargeCause>(),
    /** Real time before each send that the gateway may have received. */
    sentAt: instants('sent_at')
      .notNull()
      .default(sql`array[now()]`),
    /** The number of sends and look-ups that ended without an outcome. */
    lookups: integer('lookups').notNull().default(0),
    /** Real time at which the gateway's event named the charge before its outcome was known; null if none did. */
    heardAt: instant('heard_at'),
    /** Real time of the first of the latest requests that had no answer or were not sent; null if the latest had one. */
    unansweredAt: instant('unanswered_at'),
    // A settled payment changes only the following columns. They stand together, as in `subscription`.
    state: text('state', { enum: ATTEMPT_STATES }).notNull(),
    gatewayChargeId: text('gateway_charge_id'),
    errorCode: text('error_code'),
    settledAt: instant('settled_at'),
    /** Real time at which the gateway first warned that the charge may be fraud; null if it did not. */
    fraudWarnedAt: instant('fraud_warned_at'),
    /** Where the outcome came from; null before, and for a row from the gateway's book. */
    settledBy: text('settled_by', { enum: SETTLED_BY }),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    childOf(table, table.intentId, paymentIntents),
    ...areListed(table.state, table.trigger, table.settledBy),
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
      .where(sql`${table.state} in ('SENDING', 'UNSENT', 'UNKNOWN', 'REVIEW')`),
    // An attempt counts those before it on the same card.
    index('payment_attempt__unpaid__idx')
      .on(table.merchantId, table.paymentMethodId, table.createdAt)
      .where(sql`${table.state} <> 'SUCCEEDED'`),
    // The sweep finds the accounts whose charges the gateway refuses.
    index('payment_attempt__refused__idx')
      .on(table.merchantId, table.gateway)
      .where(sql`${table.isAccountRefused} and ${table.state} in ('SENDING', 'UNSENT')`),
    // An intent is paid at most once.
    uniqueIndex('payment_attempt__one_success__uq')
      .on(table.merchantId, table.intentId)
      .where(sql`${table.state} = 'SUCCEEDED'`),
    // Manual review and the events of gateways find the attempt of a gateway charge by this index.
    index('payment_attempt__charge__idx')
      .on(table.gatewayChargeId)
      .where(sql`${table.gatewayChargeId} is not null`),
  ],
);

/** A refund of a paid intent or a late charge, committed before it is sent. */
export const refunds = pgTable(
  'refund',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    intentId: text('intent_id').notNull(),
    state: text('state', { enum: REFUND_STATES }).notNull(),
    amountMinor: amountMinor().notNull(),
    currency: currency().notNull(),
    gatewayKey: text('gateway_key').notNull(),
    gatewayChargeId: text('gateway_charge_id').notNull(),
    /** The gateway's id of the refund; null before the gateway has accepted the refund. */
    gatewayRefundId: text('gateway_refund_id'),
    /** The attempt whose late charge is refunded; such a refund is none of the intent. */
    lateAttemptId: text('late_attempt_id'),
    reason: text('reason'),
    /** Business time: the time of the subscription's test clock, else real time. */
    createdAt: instant('created_at').notNull(),
    /** Business time of the success. Null before, and if the refund failed after it had succeeded. */
    refundedAt: instant('refunded_at'),
    /** Real time. */
    firstSentAt: instant('first_sent_at'),
    updatedAt: realTime('updated_at'),
    /** Real time at which `verify --adopt` copied the row from the gateway's book; null for every other row. */
    adoptedAt: instant('adopted_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    childOf(table, table.intentId, paymentIntents),
    ...areListed(table.state),
    check('refund__amount__ck', sql`${table.amountMinor} between 1 and 9007199254740991`),
    uniqueIndex('refund__gateway_key__uq').on(table.gatewayKey),
    // A late charge is refunded at most once.
    uniqueIndex('refund__late_attempt__uq')
      .on(table.merchantId, table.lateAttemptId)
      .where(sql`${table.lateAttemptId} is not null`),
    index('refund__intent__idx').on(table.merchantId, table.intentId),
    // A gateway's event names its refund.
    index('refund__gateway_refund__idx').on(table.gatewayRefundId),
    // Lists read these indexes, newest first.
    index('refund__created__idx').on(table.merchantId, table.createdAt, table.id),
    index('refund__refunded__idx')
      .on(table.merchantId, table.refundedAt, table.id)
      .where(sql`${table.refundedAt} is not null`),
    // The periodic sweep finds undecided refunds by this index.
    index('refund__open__idx')
      .on(table.updatedAt)
      .where(sql`${table.state} in ('CREATED', 'SENDING', 'UNKNOWN', 'PENDING', 'REVIEW')`),
  ],
);

/** One row for each attempt or refund ever in REVIEW, and for each voided attempt that was sent. */
export const paymentReviews = pgTable(
  'payment_review',
  {
    merchantId: merchantId(),
    subjectId: text('subject_id').notNull(),
    reason: text('reason').notNull(),
    /** Real time, like every instant below. */
    sinceAt: realTime('since_at'),
    /** The decision; null until an operator decides. A voided attempt has the decision `not_charged` at once. */
    outcome: text('outcome', { enum: REVIEW_OUTCOMES }),
    /** The gateway's id of the charge or refund that the operator found. */
    gatewayId: text('gateway_id'),
    code: text('code'),
    decidedBy: text('decided_by'),
    note: text('note'),
    decidedAt: instant('decided_at'),
    /** Set when the outcome is recorded and the late-charge watch, if any, has ended; null before. */
    closedAt: instant('closed_at'),
    /** When the review was opened or decided, or when a sweep last took it. */
    updatedAt: realTime('updated_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.subjectId] }),
    ...areListed(table.outcome),
    check(
      'payment_review__decided__ck',
      sql`(${table.outcome} is null) = (${table.decidedAt} is null)`,
    ),
    // Two decisions must not name the same gateway charge or the same gateway refund.
    uniqueIndex('payment_review__found__uq')
      .on(table.outcome, table.gatewayId)
      .where(sql`${table.gatewayId} is not null`),
    index('payment_review__open__idx')
      .on(table.updatedAt)
      .where(sql`${table.closedAt} is null`),
  ],
);

/** A payer's dispute as the gateway last described it. It changes no intent or subscription. */
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
    status: text('status', { enum: DISPUTE_STATUSES }).notNull(),
    /** Real time, from the gateway. */
    openedAt: instant('opened_at').notNull(),
    /** Real time at which we learned that the dispute is no longer OPEN; null before. */
    closedAt: instant('closed_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    childOf(table, table.intentId, paymentIntents),
    childOf(table, table.attemptId, paymentAttempts),
    uniqueIndex('dispute__gateway_dispute__uq').on(table.gateway, table.gatewayDisputeId),
    index('dispute__intent__idx').on(table.merchantId, table.intentId),
    ...areListed(table.status),
  ],
);
