import { foreignKey, jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import type { CommandResult } from '../../domain/subscription/commands.ts';
import { instant, merchantId } from './_columns.ts';
import { subscriptions } from './subscriptions.ts';

/**
 * An executed command, inserted in the transaction of its transition. A repeat of the command finds the row
 * and returns its result. `result` is null while the outcome of the command's payment is unknown.
 */
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
    foreignKey({
      columns: [table.merchantId, table.subscriptionId],
      foreignColumns: [subscriptions.merchantId, subscriptions.id],
    }),
  ],
);
