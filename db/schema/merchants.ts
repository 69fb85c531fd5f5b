import { sql } from 'drizzle-orm';
import {
  check,
  jsonb,
  pgTable,
  text,
  boolean,
  primaryKey,
  uniqueIndex,
  index,
  integer,
  uuid,
} from 'drizzle-orm/pg-core';
import type { Branding } from '../../domain/branding.ts';
import type { PaymentMethodKind } from '../../domain/payment-method.ts';
import type { CardLimits } from '../../domain/card-limits.ts';
import type { DeclarationRule } from '../../domain/declaration.ts';
import type { PortalRight } from '../../domain/subscription/portal.ts';
import type { NoticeRules } from '../../domain/notice-rules.ts';
import type { RetryPlan } from '../../domain/retry-plan.ts';
import { instant, areListed, bytes, merchantId } from './_columns.ts';

export const MERCHANT_MODES = ['test', 'live'] as const;
export type MerchantMode = (typeof MERCHANT_MODES)[number];

export interface WebhookRetention {
  bodyDays: number;
  /** At most `bodyDays`. */
  attemptDays: number;
}

export interface MerchantSettings {
  retryPlan: RetryPlan;
  /** Absent: `DEFAULT_CARD_LIMITS`. */
  cardLimits?: CardLimits;
  /** What the payer's bank shows after the name of the account. Absent: nothing. */
  statementSuffix?: string;
  /** Renewals are spread over this many ms after their due date. Absent or null: as far as the workers need. */
  jitterMs?: number | null;
  /** Payment methods that the hosted pages may offer. Absent: every supported one. */
  paymentMethods?: PaymentMethodKind[];
  /** Absent: the pages show the merchant's name only. */
  branding?: Branding;
  /** Absent: `DEFAULT_NOTICE_RULES`. */
  notices?: NoticeRules;
  /** False: a charge waits until its notices had their days. Absent: true. */
  chargeWithoutNotice?: boolean;
  /** Days for which events and the attempts to deliver them are kept. Absent: the installation's retention. */
  webhookRetention?: WebhookRetention;
  /** What follows a payer's declaration. Absent: `tell`. */
  declarations?: DeclarationRule;
  /** Absent: `WITHDRAWAL_DAYS`. */
  withdrawalDays?: number;
  /** What payers do on their own page. Absent: `DEFAULT_PORTAL`. */
  portal?: PortalRight[];
}

/** One merchant in one mode: live and test records have different merchants. */
export const merchants = pgTable(
  'merchant',
  {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    mode: text('mode', { enum: MERCHANT_MODES }).notNull(),
    settings: jsonb('settings').$type<MerchantSettings>().notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (table) => areListed(table.mode),
);

/** An account at a real gateway. The current one saves new methods; each charges its own. */
export const merchantGateways = pgTable(
  'merchant_gateway',
  {
    merchantId: merchantId().references(() => merchants.id),
    name: text('name').notNull(),
    mode: text('mode', { enum: MERCHANT_MODES }).notNull(),
    sealedKey: bytes('sealed_key').notNull(),
    /** The last four characters of the key, which the operator sees. */
    keyEnding: text('key_ending').notNull(),
    /** Verifies the gateway's events. Null if no secret was given. */
    sealedWebhookSecret: bytes('sealed_webhook_secret'),
    /** The previous secret, which also verifies events until `previousWebhookSecretUntil`. */
    sealedPreviousWebhookSecret: bytes('sealed_previous_webhook_secret'),
    previousWebhookSecretUntil: instant('previous_webhook_secret_until'),
    isCurrent: boolean('is_current').notNull(),
    /** Since when the merchant knows that the gateway refuses the account's charges; null if it takes them. */
    blockedAt: instant('blocked_at'),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.name] }),
    uniqueIndex('merchant_gateway__account__uq').on(table.name, table.mode),
    uniqueIndex('merchant_gateway__current__uq')
      .on(table.merchantId)
      .where(sql`${table.isCurrent}`),
    ...areListed(table.mode),
  ],
);

/** Only HMAC-SHA256(pepper, secret) is stored. */
export const credentials = pgTable(
  'credential',
  {
    keyId: text('key_id').primaryKey(),
    merchantId: merchantId().references(() => merchants.id),
    secretHash: bytes('secret_hash').notNull(),
    /** A hash of the pepper, which tells whether a process has this pepper. */
    pepperId: bytes('pepper_id').notNull(),
    isReadOnly: boolean('is_read_only').notNull().default(false),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at'),
    /** A rotation sets it, and `expiresAt` to 24 h later. */
    replacedAt: instant('replaced_at'),
    revokedAt: instant('revoked_at'),
    /** The latest use, at most a minute too early. Null before the first use. */
    lastUsedAt: instant('last_used_at'),
  },
  (table) => [index('credential__merchant__idx').on(table.merchantId)],
);

export const IDEMPOTENCY_STATES = ['IN_FLIGHT', 'DONE'] as const;

/** IN_FLIGHT under a lease until the answer is stored. Repeats keep the first `commandId`. */
export const idempotencyKeys = pgTable(
  'idempotency_key',
  {
    merchantId: merchantId(),
    route: text('route').notNull(),
    key: text('key').notNull(),
    fingerprint: bytes('fingerprint').notNull(),
    state: text('state', { enum: IDEMPOTENCY_STATES }).notNull(),
    owner: uuid('owner').notNull(),
    lockedUntil: instant('locked_until').notNull(),
    commandId: text('command_id').notNull(),
    httpStatus: integer('http_status'),
    body: text('body'),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.route, table.key] }),
    ...areListed(table.state),
    check('idempotency_key__fingerprint__ck', sql`octet_length(${table.fingerprint}) = 32`),
    // The periodic sweep checks by this index whether a charge or a refund was requested with a key.
    index('idempotency_key__command__idx').on(table.merchantId, table.commandId),
    index('idempotency_key__expiry__idx').on(table.expiresAt),
  ],
);
