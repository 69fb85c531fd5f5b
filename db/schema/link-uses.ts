import { foreignKey, index, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { bytes, instant, merchantId } from './_columns.ts';
import { subscriptionLinks } from './subscription-links.ts';

/**
 * One use of a link, with a hash of the client's address. The rows of the last 10 minutes limit the uses that one
 * address can take.
 */
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
    foreignKey({
      columns: [table.merchantId, table.linkId],
      foreignColumns: [subscriptionLinks.merchantId, subscriptionLinks.id],
    }),
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
