import { pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core';
import { instant, merchantId } from './_columns.ts';

/**
 * Unused by this release, which stores claims in `webhook_delivery.claimed_until`. Workers of the previous
 * release still write to this table. The next release drops the table.
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
