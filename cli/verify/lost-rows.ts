import type { Client } from '@temporalio/client';
import { inArray } from 'drizzle-orm';
import type { Db } from '../../db/client.ts';
import { merchants } from '../../db/schema/merchants.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { formatAmount } from '../../domain/money.ts';
import { nextPaymentAt } from '../../domain/subscription/state.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { subscriptionsQuery } from '../../temporal/subscriptions/runs.ts';
import { ACCEPT_WITHIN_MS } from '../../temporal/client.ts';
import {
  listedSubscription,
  subscriptionWorkflowId,
} from '../../workflows/subscription/messages.ts';
import type { KnownState } from '../../workflows/subscription/messages.ts';
import { minuteText } from '../command-line/terminal.ts';

const BATCH = 1_000;

/** The running subscriptions without a row. `foreign`: their merchant is not in the database, either. */
export interface LostRows {
  readonly lostRows: readonly SubscriptionRef[];
  readonly foreign: readonly SubscriptionRef[];
}

/** Each row is read after its workflow was listed, and is committed before its workflow starts: a missing one is lost. */
export async function findLostRows(
  db: Db,
  client: Client,
  taskQueuePrefix: string,
): Promise<LostRows> {
  const found: SubscriptionRef[] = [];
  let batch: SubscriptionRef[] = [];
  const readBatch = async (): Promise<void> => {
    found.push(...(await withoutRow(db, batch)));
    batch = [];
  };
  const running = client.workflow.list({
    query: `${subscriptionsQuery(taskQueuePrefix)} AND ExecutionStatus = 'Running'`,
  });
  for await (const { workflowId, typedSearchAttributes } of running) {
    const ref = listedSubscription(workflowId, typedSearchAttributes);
    if (ref !== null) batch.push(ref);
    if (batch.length === BATCH) await readBatch();
  }
  await readBatch();
  const merchantIds = [...new Set(found.map(({ merchantId }) => merchantId))];
  const owners = await db
    .select({ id: merchants.id })
    .from(merchants)
    .where(inArray(merchants.id, merchantIds));
  const isOwn = ({ merchantId }: SubscriptionRef) => owners.some(({ id }) => id === merchantId);
  return { lostRows: found.filter(isOwn), foreign: found.filter((ref) => !isOwn(ref)) };
}

async function withoutRow(db: Db, refs: readonly SubscriptionRef[]): Promise<SubscriptionRef[]> {
  const ids = refs.map(({ subscriptionId }) => subscriptionId);
  const rows = await db
    .select({ id: subscriptions.id })
    .from(subscriptions)
    .where(inArray(subscriptions.id, ids));
  const known = new Set(rows.map(({ id }) => id));
  return refs.filter(({ subscriptionId }) => !known.has(subscriptionId));
}

/** Another database has other merchants, so the workflows of unknown ones are left to the operator. */
export function foreignLines({ foreign: [first, ...others] }: LostRows): string[] {
  if (first === undefined) return [];
  const { subscriptionId, merchantId } = first;
  return [
    `! ${subscriptionId} and ${others.length} more workflows have no row, and no merchant (${merchantId}) in this database: ` +
      'terminate them if it is the right one',
  ];
}

/** Ends a run whose row is lost, because it can neither charge nor end. Returns what the run knew, for the operator. */
export async function endLostRow(client: Client, known: KnownState): Promise<string> {
  const { subscriptionId, customerId, status, cyclesCharged, terms } = known;
  await client.withDeadline(Date.now() + ACCEPT_WITHIN_MS, () =>
    client.workflow
      .getHandle(subscriptionWorkflowId(subscriptionId))
      .terminate('verify --adopt: its row is lost'),
  );
  const amount = formatAmount(terms.amountMinor, terms.currency);
  const nextAt = nextPaymentAt(known);
  const next = nextAt === null ? '' : `, next payment ${minuteText(nextAt)}`;
  return (
    `! ${subscriptionId}: its row is lost, so its workflow is ended: ${status}, ${cyclesCharged} of ${terms.cycleCount} ` +
    `cycles paid, ${amount} every ${terms.intervalCount} ${terms.interval}${next}, customer ${customerId}`
  );
}
