import { emailNormalForm } from '../../../domain/email.ts';
import { entryEvents } from '../../../domain/subscription/change.ts';
import { initialJitter, newSubscription } from '../../../domain/subscription/state.ts';
import type { NewSubscription, SubscriptionState } from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { subscriptions } from '../../schema/subscriptions.ts';
import { insertSession } from '../checkouts/sessions.ts';
import { loadSettings } from '../merchants/settings.ts';
import { cycleIntentOf, insertCycleIntent } from './cycles.ts';
import { insertFirstEntry } from './entries.ts';
import { appendDrafts } from './events.ts';
import { rowOf } from './row.ts';

/** The merchant's order data: the columns that are only stored and returned. */
export type SubscriptionOrder = Omit<
  typeof subscriptions.$inferInsert,
  | keyof ReturnType<typeof rowOf>
  | 'merchantId'
  | 'id'
  | 'customerId'
  | 'normalEmail'
  | 'lastTransitionId'
  | 'testClockId'
  | 'clockReachedAt'
  | 'presentmentCurrency'
  | 'createdAt'
  | 'insertedAt'
  | 'updatedAt'
  | 'workflowStartedAt'
>;

export interface NewCheckout {
  id: string;
  /** The bearer token of the page's URL; only its hash is stored. */
  token: string;
}

/**
 * Writes a new subscription inside the caller's transaction: row, first intent (none with a trial), checkout session,
 * events. The caller must start the workflow after the commit, else the sweep does.
 */
export async function createSubscription(
  tx: Db,
  subscription: Omit<NewSubscription, 'jitter'>,
  order: SubscriptionOrder,
  checkout: NewCheckout,
): Promise<SubscriptionState> {
  const settings = await loadSettings(tx, subscription.merchantId);
  // On a test clock a renewal is charged at its date: nothing has to be spread.
  const windowMs = settings.jitterMs ?? (subscription.testClockId === null ? null : 0);
  const jitter = initialJitter(subscription.subscriptionId, windowMs);
  const state = newSubscription({ ...subscription, jitter });
  const { merchantId, subscriptionId, createdAt, terms } = state;
  const placed = {
    merchantId,
    customerId: state.customerId,
    customerDetails: order.customerDetails,
    presentmentCurrency: terms.currency,
    receiptId: order.receiptId ?? null,
    metadata: order.metadata ?? null,
  };
  const { owed, checkoutExpiresAt: expiresAt } = state;
  const copied = { ...placed, subscriptionId };
  // Pipelined: the connection executes the statements in this order.
  const [, , , first] = await Promise.all([
    tx
      .insert(subscriptions)
      .values({
        ...order,
        ...placed,
        ...rowOf(state),
        id: subscriptionId,
        normalEmail: emailNormalForm(order.customerDetails.email),
        lastTransitionId: `${subscriptionId}:${state.version}`,
        testClockId: state.testClockId,
        clockReachedAt: state.testClockId === null ? null : createdAt,
        createdAt,
      })
      .execute(),
    insertFirstEntry(tx, state),
    insertSession(tx, { ...checkout, merchantId, subscriptionId, expiresAt, createdAt }),
    owed && insertCycleIntent(tx, copied, cycleIntentOf({ ...state, owed }, createdAt, null)),
  ]);
  const entered = entryEvents(null, state, createdAt);
  const drafts = first ? [first.created, ...entered] : entered;
  await appendDrafts(tx, copied, drafts, first?.facts);
  return state;
}
