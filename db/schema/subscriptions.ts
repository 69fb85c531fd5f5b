import { sql } from 'drizzle-orm';
import {
  boolean,
  check,
  foreignKey,
  index,
  integer,
  json,
  pgTable,
  primaryKey,
  text,
} from 'drizzle-orm/pg-core';
import type { Locale } from '../../domain/locales.ts';
import type { CustomerDetails } from '../../domain/customer.ts';
import { SUBSCRIPTION_STATUSES } from '../../domain/subscription/state.ts';
import type { SubscriptionStatus } from '../../domain/subscription/state.ts';
import {
  amountMinor,
  currency,
  instant,
  matchesEmail,
  merchantId,
  oneOf,
  recordedState,
} from './_columns.ts';
import { customers } from './customers.ts';
import { subscriptionLinks } from './subscription-links.ts';
import type { ProductPage } from './subscription-links.ts';
import { testClocks } from './test-clocks.ts';

/**
 * One subscription: the merchant's order, and the last recorded state of its workflow. `state` is complete,
 * so that a lost workflow can start again from the row. Some columns repeat facts of `state` for queries.
 */
export const subscriptions = pgTable(
  'subscription',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    customerId: text('customer_id').notNull(),
    status: text('status').$type<SubscriptionStatus>().notNull(),
    version: integer('version').notNull(),
    /** The transition that wrote `version`. `Transition.transitionId` lists the forms. */
    lastTransitionId: text('last_transition_id').notNull(),
    state: recordedState('state').notNull(),
    amountMinor: amountMinor().notNull(),
    currency: currency().notNull(),
    cycleCount: integer('cycle_count').notNull(),
    cyclesCharged: integer('cycles_charged').notNull(),
    /** When the next step that writes the row is due. Real time for an open attempt, else business time. */
    wakeAt: instant('wake_at'),
    testClockId: text('test_clock_id'),
    /** The link that created the subscription; null if the merchant created it. */
    linkId: text('link_id'),
    clockReachedAt: instant('clock_reached_at'),
    customerDetails: json('customer_details').$type<CustomerDetails>().notNull(),
    /** `emailNormalForm` of the e-mail address in `customerDetails`. */
    normalEmail: text('normal_email'),
    receiptId: text('receipt_id'),
    description: text('description'),
    callbackUrl: text('callback_url'),
    cancelUrl: text('cancel_url'),
    metadata: json('metadata').$type<Record<string, string>>(),
    productPage: json('product_page').$type<ProductPage>(),
    phoneNumberRequired: boolean('phone_number_required').notNull(),
    locale: text('locale').$type<Locale>(),
    presentmentCurrency: currency('presentment_currency').notNull(),
    /** Business time: the time of the subscription's test clock, else real time. */
    createdAt: instant('created_at').notNull(),
    /** Real time of the insert. By it the periodic sweep finds subscriptions whose workflow was not started. */
    insertedAt: instant('inserted_at')
      .notNull()
      .default(sql`now()`),
    updatedAt: instant('updated_at')
      .notNull()
      .default(sql`now()`),
    /** Real time when a sweep last took the row; null if none did. A sweep takes the oldest values first. */
    sweptAt: instant('swept_at'),
    /** Real time when a newer run of the workflow was found, which is held; null if there is none. */
    heldAt: instant('held_at'),
    /** Null until Temporal confirmed the start of the workflow. */
    workflowStartedAt: instant('workflow_started_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    foreignKey({
      columns: [table.merchantId, table.customerId],
      foreignColumns: [customers.merchantId, customers.id],
    }),
    foreignKey({
      columns: [table.merchantId, table.testClockId],
      foreignColumns: [testClocks.merchantId, testClocks.id],
    }),
    foreignKey({
      columns: [table.merchantId, table.linkId],
      foreignColumns: [subscriptionLinks.merchantId, subscriptionLinks.id],
    }),
    check('subscription__status__ck', sql`${table.status} in (${oneOf(SUBSCRIPTION_STATUSES)})`),
    check('subscription__amount__ck', sql`${table.amountMinor} between 0 and 9007199254740991`),
    check('subscription__cycles__ck', sql`${table.cyclesCharged} <= ${table.cycleCount}`),
    check('subscription__normal_email__ck', matchesEmail(table.customerDetails, table.normalEmail)),
    // Lists read this index, newest first.
    index('subscription__created__idx').on(table.merchantId, table.createdAt, table.id),
    // Lists with a filter.
    index('subscription__receipt__idx')
      .on(table.merchantId, table.receiptId)
      .where(sql`${table.receiptId} is not null`),
    index('subscription__normal_email__idx')
      .on(table.merchantId, table.normalEmail)
      .where(sql`${table.normalEmail} is not null`),
    // Finds the subscriptions of a customer.
    index('subscription__customer__idx').on(table.merchantId, table.customerId),
    // The periodic sweep finds rows whose workflow start is unconfirmed.
    index('subscription__unstarted__idx')
      .on(table.insertedAt)
      .where(sql`${table.workflowStartedAt} is null`),
    // The sweep counts the subscriptions whose workflow must run.
    index('subscription__live__idx')
      .on(table.workflowStartedAt)
      .where(sql`${table.status} <> 'ENDED' and ${table.heldAt} is null`),
    // The sweep and the health check find the held subscriptions.
    index('subscription__held__idx')
      .on(table.heldAt)
      .where(sql`${table.heldAt} is not null`),
    // The periodic sweep finds subscriptions with an overdue step.
    index('subscription__wake__idx')
      .on(table.wakeAt)
      .where(sql`${table.wakeAt} is not null and ${table.testClockId} is null`),
    // Finds the subscriptions of a test clock that have not reached its target.
    index('subscription__clock__idx')
      .on(table.merchantId, table.testClockId, table.clockReachedAt)
      .where(sql`${table.status} <> 'ENDED' and ${table.testClockId} is not null`),
  ],
);
