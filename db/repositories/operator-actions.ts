import { and, desc, eq, gte, ne, or, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import { unionAll } from 'drizzle-orm/pg-core';
import type { Db } from '../client.ts';
import { operatorActions } from '../schema/operator-actions.ts';
import type { ActionFacts } from '../schema/operator-actions.ts';
import { subscriptionEntries } from '../schema/subscriptions.ts';

/** The action of a `verify --adopt` that has looked at every book and released every held run. */
export const ADOPTED = 'verify adopt done';

export interface OperatorAction {
  readonly actedBy: string;
  readonly command: string;
  readonly subject: string;
  readonly merchantId: string | null;
  readonly facts: ActionFacts;
}

/** Records an action, inside the transaction of the action. */
export async function recordAction(tx: Db, action: OperatorAction): Promise<void> {
  await tx.insert(operatorActions).values(action);
}

/** `actedBy` is null for a change in a subscription's ledger, which has no name. */
export type ListedAction = Awaited<ReturnType<typeof listActions>>[number];

/**
 * Returns the newest actions, the newest first: those of commands, and the changes of subscriptions that an operator
 * ordered by a signal or by a review. `subject` is the id of a record or of its merchant.
 */
export async function listActions(
  db: Db,
  { since, subject, limit }: { since?: number; subject?: string; limit: number },
) {
  const within = (at: AnyPgColumn, ...ids: AnyPgColumn[]) =>
    and(
      since === undefined ? undefined : gte(at, since),
      subject === undefined ? undefined : or(...ids.map((id) => eq(id, subject))),
    );
  const { at, actedBy, command, subject: of, merchantId, facts } = operatorActions;
  const entries = subscriptionEntries;
  return unionAll(
    db
      .select({
        at,
        actedBy: sql<string | null>`${actedBy}`.as('acted_by'),
        command,
        subject: of,
        merchantId,
        facts,
      })
      .from(operatorActions)
      .where(within(at, of, merchantId)),
    db
      .select({
        at: entries.recordedAt,
        actedBy: sql<string | null>`null::text`.as('acted_by'),
        command: sql<string>`'subscription ' || ${entries.kind}`.as('command'),
        subject: entries.subscriptionId,
        merchantId: sql<string | null>`${entries.merchantId}`.as('merchant_id'),
        facts: entries.facts,
      })
      .from(entries)
      .where(
        and(
          eq(entries.actor, 'operator'),
          // An import is one action of its command.
          ne(entries.kind, 'imported'),
          within(entries.recordedAt, entries.subscriptionId, entries.merchantId),
        ),
      ),
  )
    .orderBy((row) => desc(row.at))
    .limit(limit);
}
