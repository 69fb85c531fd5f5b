import { randomBytes } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { eq } from 'drizzle-orm';
import type { Db } from '../../db/client.ts';
import { createSubscription } from '../../db/repositories/subscriptions/create.ts';
import { listEntries } from '../../db/repositories/subscriptions/row.ts';
import { insertCustomer } from '../../db/repositories/customers/customers.ts';
import { outboxEvents } from '../../db/schema/webhooks.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { newId, randomToken } from '../../domain/ids.ts';
import { textOf } from '../../domain/subscription/entries.ts';
import type { SubscriptionRef, SubscriptionState } from '../../domain/subscription/state.ts';
import type { Terms } from '../../domain/subscription/terms.ts';
import { advanceClock } from '../../workflows/subscription/messages.ts';

const DAY_MS = 86_400_000;

export interface NewSubscription {
  terms?: Partial<Terms>;
  createdAt: number;
  checkoutExpiresAt?: number;
  testClockId?: string | null;
  receiptId?: string;
  productName?: string;
}

/** Inserts a subscription with its customer and checkout session, as the API does. */
export async function insertSubscription(
  db: Db,
  merchantId: string,
  subscription: NewSubscription,
): Promise<SubscriptionRef> {
  const { createdAt, productName } = subscription;
  const terms: Terms = {
    amountMinor: 1_999,
    currency: 'USD',
    interval: 'MONTH',
    intervalCount: 1,
    cycleCount: 12,
    upfrontAmountMinor: null,
    trial: null,
    ...subscription.terms,
  };
  const id = (prefix: 'cus' | 'sub' | 'in' | 'cs') => newId(prefix, createdAt, randomBytes);
  const customerId = id('cus');
  const subscriptionId = id('sub');
  const customerDetails = { name: 'Ada Example', email: 'ada@example.com' };
  await db.transaction(async (tx) => {
    await insertCustomer(tx, { merchantId, id: customerId, details: customerDetails, createdAt });
    await createSubscription(
      tx,
      {
        subscriptionId,
        merchantId,
        customerId,
        terms,
        createdAt,
        checkoutExpiresAt: subscription.checkoutExpiresAt ?? createdAt + DAY_MS,
        testClockId: subscription.testClockId ?? null,
      },
      {
        customerDetails,
        receiptId: subscription.receiptId ?? null,
        description: null,
        callbackUrl: 'https://merchant.example/back',
        cancelUrl: null,
        metadata: null,
        productPage: productName === undefined ? null : { name: productName },
        phoneNumberRequired: false,
      },
      { id: id('cs'), token: randomToken(randomBytes) },
    );
  });
  return { merchantId, subscriptionId };
}

export async function stateOf(db: Db, ref: SubscriptionRef): Promise<SubscriptionState> {
  const [row] = await db
    .select({ state: subscriptions.state })
    .from(subscriptions)
    .where(eq(subscriptions.id, ref.subscriptionId));
  if (!row) throw new Error(`no subscription ${ref.subscriptionId}`);
  return row.state;
}

/** Every entry of the ledger, oldest first, in words. */
export async function timelineOf(db: Db, ref: SubscriptionRef) {
  const entries = await listEntries(db, ref, { afterVersion: 0, limit: 1_000 });
  const { terms } = await stateOf(db, ref);
  return entries.map((entry) => ({ at: entry.at, ...textOf(entry, terms), actor: entry.actor }));
}

export async function eventsOf(db: Db, ref: SubscriptionRef): Promise<Record<string, unknown>[]> {
  const rows = await db
    .select({ body: outboxEvents.body })
    .from(outboxEvents)
    .where(eq(outboxEvents.streamId, ref.subscriptionId))
    .orderBy(outboxEvents.sequence);
  return rows.map((row) => JSON.parse(row.body) as Record<string, unknown>);
}

/**
 * Sends the signal `advanceClock` at least `count` times, to make the history longer. The clock must have
 * reached `targetAt` already, so that the signals have no other effect.
 */
export async function lengthenHistory(
  handle: Pick<WorkflowHandle, 'signal'>,
  targetAt: number,
  count: number,
): Promise<void> {
  for (let sent = 0; sent < count; sent += 10) {
    await Promise.all(Array.from({ length: 10 }, () => handle.signal(advanceClock, { targetAt })));
  }
}
