import { foreignKey, jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import type { CommandResult } from '../../domain/subscription/commands.ts';
import { instant, merchantId } from './_columns.ts';
import { subscriptions } from './subscriptions.ts';

/**
 * A command that was carried out, inserted in the transaction that did so. The primary key is what
 * makes a command repeatable: the second insert finds the first one's result. `result` is null while
 * the payment that decides it has no known outcome. Writer: activities.
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
