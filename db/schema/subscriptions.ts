import { sql } from 'drizzle-orm';
import {
  pgTable,
  primaryKey,
  text,
  bigint,
  boolean,
  check,
  integer,
  json,
  jsonb,
  uniqueIndex,
  index,
} from 'drizzle-orm/pg-core';
import {
  amountMinor,
  bytes,
  childOf,
  currency,
  instant,
  matchesEmail,
  merchantId,
  areListed,
  realTime,
  recordedState,
} from './_columns.ts';
import { merchants } from './merchants.ts';
import type { Locale } from '../../domain/locales.ts';
import type { CustomerDetails } from '../../domain/customer.ts';
import type { PaymentMethodKind } from '../../domain/payment-method.ts';
import { ACTORS } from '../../domain/subscription/actor.ts';
import type { Entry } from '../../domain/subscription/entries.ts';
import type { Terms } from '../../domain/subscription/terms.ts';
import { SUBSCRIPTION_STATUSES } from '../../domain/subscription/status.ts';
import { customers } from './customers.ts';
import type { CommandResult } from '../../domain/subscription/commands.ts';

/** An advance is complete when every subscription is ENDED or has `clockReachedAt >= targetAt`. */
export const testClocks = pgTable(
  'test_clock',
  {
    merchantId: merchantId().references(() => merchants.id),
    id: text('id').notNull(),
    targetAt: instant('target_at').notNull(),
    /** Real time of the last advance. */
    sentAt: realTime('sent_at'),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.merchantId, table.id] })],
);

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

/** The template of a link's subscriptions or payments. Submitting its form takes a use. */
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
    multiUseLimit: bigint('multi_use_limit', { mode: 'number' }).notNull(),
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

/** A use of a link. The rows of 10 minutes limit the uses that one address can take. */
export const linkUses = pgTable(
  'link_use',
  {
    merchantId: merchantId(),
    linkId: text('link_id').notNull(),
    /** HMAC-SHA256 of the client's address; for IPv6 of its /64 network. */
    addressHash: bytes('address_hash').notNull(),
    /** SHA-256 of the checkout's token, as in `checkout_session`. */
    tokenHash: bytes('token_hash').notNull(),
    /** Real time. */
    begunAt: instant('begun_at').notNull(),
  },
  (table) => [
    childOf(table, table.linkId, subscriptionLinks),
    primaryKey({ columns: [table.tokenHash] }),
    index('link_use__address__idx').on(
      table.merchantId,
      table.linkId,
      table.addressHash,
      table.begunAt,
    ),
    // The periodic sweep finds rows past their retention by this index.
    index('link_use__begun__idx').on(table.begunAt),
  ],
);

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
    testClockId: text('test_clock_id'),
    /** The link that created the subscription; null if the merchant created it. */
    linkId: text('link_id'),
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
    insertedAt: realTime('inserted_at'),
    /** Null until Temporal confirmed the start of the workflow. */
    workflowStartedAt: instant('workflow_started_at'),
    amountMinor: amountMinor().notNull(),
    currency: currency().notNull(),
    cycleCount: integer('cycle_count').notNull(),
    // A renewal changes only the following columns, and the beginning of `state`: the WAL of an update omits what stays the
    // same before the first change and after the last one.
    cyclesCharged: integer('cycles_charged').notNull(),
    version: integer('version').notNull(),
    /** The transition that wrote `version`. `Transition.transitionId` lists the forms. */
    lastTransitionId: text('last_transition_id').notNull(),
    /**
     * Not later than the instant at which the next step that writes the row is due. Real time for an open attempt, else
     * business time. The opening of a due attempt keeps an earlier instant: then no index changes.
     */
    wakeAt: instant('wake_at'),
    updatedAt: realTime('updated_at'),
    status: text('status', { enum: SUBSCRIPTION_STATUSES }).notNull(),
    clockReachedAt: instant('clock_reached_at'),
    /** Real time when a sweep last took the row; null if none did. A sweep takes the oldest values first. */
    sweptAt: instant('swept_at'),
    /** Real time when a newer run of the workflow was found, which is held; null if there is none. */
    heldAt: instant('held_at'),
    state: recordedState('state').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    childOf(table, table.customerId, customers),
    childOf(table, table.testClockId, testClocks),
    childOf(table, table.linkId, subscriptionLinks),
    ...areListed(table.status),
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
    // The periodic sweep finds subscriptions that are behind their test clock. No index may have `updated_at`: each
    // change would then need an entry in all indexes.
    index('subscription__behind__idx')
      .on(table.insertedAt)
      .where(sql`${table.testClockId} is not null and ${table.heldAt} is null`),
    // Finds the subscriptions of a test clock that have not reached its target.
    index('subscription__clock__idx')
      .on(table.merchantId, table.testClockId, table.clockReachedAt)
      .where(sql`${table.status} <> 'ENDED' and ${table.testClockId} is not null`),
  ],
);

export const IMPORT_STATUSES = ['ACTIVE', 'TRIALING'] as const;
export type ImportStatus = (typeof IMPORT_STATUSES)[number];

/** The imported terms, under their wire names. A repeated import must have the same terms. */
export type ImportedTerms = Readonly<Record<string, string | number | null>>;

/** An import under the merchant's own id, with the state at that time. */
export const subscriptionImports = pgTable(
  'subscription_import',
  {
    merchantId: merchantId(),
    importId: text('import_id').notNull(),
    subscriptionId: text('subscription_id').notNull(),
    gateway: text('gateway').notNull(),
    /** The gateway's id of the payer; null if the gateway stores the payment method without a payer. */
    gatewayCustomerId: text('gateway_customer_id'),
    terms: jsonb('terms').$type<ImportedTerms>().notNull(),
    /** Status, number of paid cycles and index of the next date at the import. */
    status: text('status', { enum: IMPORT_STATUSES }).notNull(),
    cyclesCharged: integer('cycles_charged').notNull(),
    nextIndex: integer('next_index').notNull(),
    /** Real time. */
    importedAt: instant('imported_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.importId] }),
    childOf(table, table.subscriptionId, subscriptions),
    uniqueIndex('subscription_import__subscription__uq').on(table.merchantId, table.subscriptionId),
    // Finds the earlier import of a payer.
    index('subscription_import__payer__idx').on(
      table.merchantId,
      table.gateway,
      table.gatewayCustomerId,
    ),
    ...areListed(table.status),
  ],
);

/** The ledger: one row for each transition, inserted with it and never changed. `entries.ts` describes `facts`. */
export const subscriptionEntries = pgTable(
  'subscription_entry',
  {
    merchantId: merchantId(),
    subscriptionId: text('subscription_id').notNull(),
    /** The version of the subscription that the transition made. */
    version: integer('version').notNull(),
    /** Business time: the time of the subscription's test clock, else real time. */
    at: instant('at').notNull(),
    recordedAt: realTime('recorded_at'),
    /** The status after the transition. */
    status: text('status', { enum: SUBSCRIPTION_STATUSES }).notNull(),
    kind: text('kind').$type<Entry['kind']>().notNull(),
    actor: text('actor', { enum: ACTORS }).notNull(),
    facts: jsonb('facts').$type<Record<string, unknown>>().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.subscriptionId, table.version] }),
    childOf(table, table.subscriptionId, subscriptions),
    ...areListed(table.status, table.actor),
    // The audit log lists the few entries of operators.
    index('subscription_entry__operator__idx')
      .on(table.recordedAt)
      .where(sql`${table.actor} = 'operator'`),
  ],
);

/** Inserted with its transition. `result` is null while its payment's outcome is unknown. */
export const subscriptionCommands = pgTable(
  'subscription_command',
  {
    merchantId: merchantId(),
    subscriptionId: text('subscription_id').notNull(),
    commandId: text('command_id').notNull(),
    kind: text('kind').notNull(),
    result: jsonb('result').$type<CommandResult>(),
    acceptedAt: instant('accepted_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.subscriptionId, table.commandId] }),
    childOf(table, table.subscriptionId, subscriptions),
  ],
);
