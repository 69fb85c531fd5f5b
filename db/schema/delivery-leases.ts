import { pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core';
import { instant, merchantId } from './_columns.ts';

/**
 * Unused: claims are kept in `webhook_delivery.claimed_until`. Workers of the release before this one
 * still write it, so the table goes with the release after this one.
 */
export const deliveryLeases = pgTable(
  'delivery_lease',
  {
    merchantId: merchantId(),
    streamId: text('stream_id').notNull(),
    configId: text('config_id').notNull(),
    owner: uuid('owner').notNull(),
    until: instant('until').notNull(),
  },
  (table) => [primaryKey({ columns: [table.merchantId, table.streamId, table.configId] })],
);
