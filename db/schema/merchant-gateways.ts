import { sql } from 'drizzle-orm';
import { boolean, check, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { bytes, instant, merchantId, oneOf } from './_columns.ts';
import { MERCHANT_MODES, merchants } from './merchants.ts';
import type { MerchantMode } from './merchants.ts';

/**
 * An account of a merchant at a real gateway, with its secrets sealed (AES-256-GCM). The current account saves new
 * payment methods; the others charge those that they have saved.
 */
export const merchantGateways = pgTable(
  'merchant_gateway',
  {
    merchantId: merchantId().references(() => merchants.id),
    name: text('name').notNull(),
    mode: text('mode').$type<MerchantMode>().notNull(),
    sealedKey: bytes('sealed_key').notNull(),
    /** The last four characters of the key, which the operator sees. */
    keyEnding: text('key_ending').notNull(),
    /** Verifies the gateway's events. Null if no secret was given. */
    sealedWebhookSecret: bytes('sealed_webhook_secret'),
    /** The previous secret, which also verifies events until `previousWebhookSecretUntil`. */
    sealedPreviousWebhookSecret: bytes('sealed_previous_webhook_secret'),
    previousWebhookSecretUntil: instant('previous_webhook_secret_until'),
    isCurrent: boolean('is_current').notNull(),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.name] }),
    uniqueIndex('merchant_gateway__account__uq').on(table.name, table.mode),
    uniqueIndex('merchant_gateway__current__uq')
      .on(table.merchantId)
      .where(sql`${table.isCurrent}`),
    check('merchant_gateway__mode__ck', sql`${table.mode} in (${oneOf(MERCHANT_MODES)})`),
  ],
);
