import { index, pgTable, text } from 'drizzle-orm/pg-core';
import { bytes, instant, merchantId } from './_columns.ts';
import { merchants } from './merchants.ts';

/**
 * One API credential. Only HMAC-SHA256(pepper, secret) is stored, never the secret. A merchant may have
 * several valid credentials. A rotated credential has `expiresAt`.
 */
export const credentials = pgTable(
  'credential',
  {
    keyId: text('key_id').primaryKey(),
    merchantId: merchantId().references(() => merchants.id),
    secretHash: bytes('secret_hash').notNull(),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at'),
    revokedAt: instant('revoked_at'),
  },
  (table) => [index('credential__merchant__idx').on(table.merchantId)],
);
