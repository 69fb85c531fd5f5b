import { pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core';
import { instant, merchantId } from './_columns.ts';

/** Who is delivering a stream to a configuration right now, so that order holds. Writer: `deliverPending`. */
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
