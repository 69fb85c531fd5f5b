import { foreignKey, index, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { bytes, instant, merchantId } from './_columns.ts';
import { subscriptionLinks } from './subscription-links.ts';

/**
 * A use of a link that a payer began, with a hash of the payer's address. It limits the uses that one address
 * begins; `uses` in the link's row counts the uses themselves. Needed for 10 minutes, deleted by the retention
 * sweep. Rule: D-37. Writer: the API.
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
    // For the retention sweep.
    index('link_use__begun__idx').on(table.begunAt),
  ],
);
