import { index, jsonb, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { realTime } from './_columns.ts';

export type ActionFacts = Readonly<Record<string, unknown>>;

/** What operators did by a command: one row in the transaction of each action, never changed or deleted. */
export const operatorActions = pgTable(
  'operator_action',
  {
    id: uuid('id').primaryKey().defaultRandom(),
    at: realTime('at'),
    /** The name that the operator gave, else the user of the operator's machine. */
    actedBy: text('acted_by').notNull(),
    command: text('command').notNull(),
    /** The id of the record that was changed. */
    subject: text('subject').notNull(),
    merchantId: text('merchant_id'),
    /** Without secrets and personal data. */
    facts: jsonb('facts').$type<ActionFacts>().notNull(),
  },
  (table) => [index('operator_action__at__idx').on(table.at)],
);
