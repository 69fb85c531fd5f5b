import { foreignKey, jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import type { CommandResult } from '../../domain/subscription/commands.ts';
import { instant, merchantId } from './_columns.ts';
import { subscriptions } from './subscriptions.ts';

/**
 * A command that was carried out, inserted in the same transaction. The primary key makes commands
 * repeatable: the second insert finds the first command's result. `result` is null while the outcome of
 * the deciding payment is unknown. Writer: activities.
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
