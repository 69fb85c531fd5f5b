import { and, desc, eq, inArray, ne, notExists, or, sql } from 'drizzle-orm';
import { methodEventBody } from '../../../domain/events.ts';
import { cardExpiresAt } from '../../../domain/payment-method.ts';
import type { EventCard } from '../../../domain/events.ts';
import type { Db } from '../../client.ts';
import { paymentMethods } from '../../schema/customers.ts';
import type { PaymentMethodStatus } from '../../schema/customers.ts';
import { paymentIntents } from '../../schema/payments.ts';
import { subscriptionLinks, subscriptions } from '../../schema/subscriptions.ts';
import { findRecord, hasValues, isRecord } from '../records.ts';
import { appendEvents } from '../webhooks/outbox.ts';

/** Joins the payment method of an intent. */
export const METHOD_OF_INTENT = isRecord(
  paymentMethods,
  paymentIntents.merchantId,
  paymentIntents.paymentMethodId,
);
/** Joins the payment method that a subscription charges now. */
export const METHOD_OF_SUBSCRIPTION = isRecord(
  paymentMethods,
  subscriptions.merchantId,
  sql`${subscriptions.state}->>'paymentMethodId'`,
);

/** What a page shows of the card. */
export const CARD = { brand: paymentMethods.brand, lastFourDigit: paymentMethods.lastFourDigit };

type NewPaymentMethod = Omit<typeof paymentMethods.$inferInsert, 'kind' | 'status'>;

/**
 * Stores a payment method that the gateway saved, as PENDING, and returns its id. A repeat with the same
 * gateway method returns the first id. Null if the method belongs to another customer.
 */
export async function savePaymentMethod(db: Db, method: NewPaymentMethod): Promise<string | null> {
  const { merchantId, customerId, gateway, gatewayMethodId } = method;
  const [saved] = await db
    .insert(paymentMethods)
    .values({ ...method, kind: 'CARD', status: 'PENDING' })
    .onConflictDoNothing()
    .returning({ id: paymentMethods.id });
  if (saved) return saved.id;
  const [row] = await db
    .select({ id: paymentMethods.id, customerId: paymentMethods.customerId })
    .from(paymentMethods)
    .where(hasValues(paymentMethods, { merchantId, gateway, gatewayMethodId }));
  // Without a row, the gateway method belongs to another merchant.
  return row?.customerId === customerId ? row.id : null;
}

export type PaymentMethod = typeof paymentMethods.$inferSelect;

/** Lists of payment methods omit PENDING ones. */
export const SAVED_STATUSES = ['LIVE', 'DELETED'] as const satisfies PaymentMethodStatus[];
export type SavedMethod = PaymentMethod & { status: (typeof SAVED_STATUSES)[number] };

/** Returns the gateway's id of the method that the customer saved last there, in any status. */
export async function findGatewayMethod(
  db: Db,
  { merchantId, customerId, gateway }: { merchantId: string; customerId: string; gateway: string },
): Promise<string | null> {
  const [row] = await db
    .select({ gatewayMethodId: paymentMethods.gatewayMethodId })
    .from(paymentMethods)
    .where(hasValues(paymentMethods, { merchantId, customerId, gateway }))
    .orderBy(desc(paymentMethods.createdAt), desc(paymentMethods.id))
    .limit(1);
  return row?.gatewayMethodId ?? null;
}

/**
 * Returns the newest card that the gateway has saved for the customer. Null if it has expired, or if the customer has
 * bought by a link that names them: any person may have opened that link and saved a card.
 */
export async function findOfferedCard(
  db: Db,
  { merchantId, customerId, gateway }: { merchantId: string; customerId: string; gateway: string },
  nowAt: number,
) {
  const byLink = (orders: typeof subscriptions | typeof paymentIntents) =>
    db
      .select({ id: orders.id })
      .from(orders)
      .innerJoin(subscriptionLinks, isRecord(subscriptionLinks, orders.merchantId, orders.linkId))
      .where(
        and(
          eq(orders.merchantId, merchantId),
          eq(orders.customerId, customerId),
          eq(subscriptionLinks.customerId, customerId),
        ),
      );
  const { id, expiryMonth, expiryYear } = paymentMethods;
  const [card] = await db
    .select({ ...CARD, id, expiryMonth, expiryYear })
    .from(paymentMethods)
    .where(
      and(
        hasValues(paymentMethods, { merchantId, customerId, gateway, status: 'LIVE' }),
        notExists(byLink(subscriptions)),
        notExists(byLink(paymentIntents)),
      ),
    )
    .orderBy(desc(paymentMethods.createdAt), desc(paymentMethods.id))
    .limit(1);
  return card && nowAt < cardExpiresAt(card) ? card : null;
}

export const findMethod = (db: Db, merchantId: string, id: string) =>
  findRecord(db, paymentMethods, merchantId, id);

/** Sets the method's status to LIVE: the method can be charged. */
export async function setMethodLive(tx: Db, merchantId: string, id: string): Promise<void> {
  await tx
    .update(paymentMethods)
    .set({ status: 'LIVE' })
    .where(isRecord(paymentMethods, merchantId, id));
}

/**
 * Sets a method to DELETED: no new charge of it is accepted; one ordered before may be made. Changes nothing while a
 * subscription uses it, and returns that subscription's id.
 */
export async function deleteUnusedMethod(
  tx: Db,
  merchantId: string,
  id: string,
): Promise<string | null> {
  const isMethod = isRecord(paymentMethods, merchantId, id);
  // Two subscriptions may replace the method at once. After the lock, the second one sees the first replacement.
  const [method] = await tx
    .select({ customerId: paymentMethods.customerId })
    .from(paymentMethods)
    .where(isMethod)
    .for('no key update');
  if (!method) return null;
  const [user] = await tx
    .select({ id: subscriptions.id })
    .from(subscriptions)
    .where(
      and(
        hasValues(subscriptions, { merchantId, customerId: method.customerId }),
        ne(subscriptions.status, 'ENDED'),
        sql`${subscriptions.state}->>'paymentMethodId' = ${id}`,
      ),
    )
    .limit(1);
  if (user) return user.id;
  await tx.update(paymentMethods).set({ status: 'DELETED' }).where(isMethod);
  return null;
}

/** Returns the subscriptions with this method that its new details may concern: unpaid, paused, or told that it expires. */
export function subscriptionsOfMethod(
  db: Db,
  { merchantId, customerId, id }: Pick<PaymentMethod, 'merchantId' | 'customerId' | 'id'>,
) {
  return db
    .select({ merchantId: subscriptions.merchantId, subscriptionId: subscriptions.id })
    .from(subscriptions)
    .where(
      and(
        hasValues(subscriptions, { merchantId, customerId }),
        or(
          inArray(subscriptions.status, ['UNPAID', 'PAUSED']),
          sql`${subscriptions.state}::jsonb @? '$.notices.pending[*] ? (@.notice == "payment_method.expiring")'`,
        ),
        sql`${subscriptions.state}->>'paymentMethodId' = ${id}`,
      ),
    );
}

/**
 * Records a change that the gateway made to a payment method. `card`: null if the gateway removed it. False if
 * nothing changed, as on a repeat. A DELETED method never changes.
 */
export async function recordMethodChange(
  db: Db,
  ref: { merchantId: string; id: string },
  card: EventCard | null,
  nowAt: number,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const isMethod = isRecord(paymentMethods, ref.merchantId, ref.id);
    const [known] = await tx.select().from(paymentMethods).where(isMethod).for('update');
    if (!known || known.status === 'DELETED') return false;
    const { brand, country, lastFourDigit, expiryMonth, expiryYear } = card ?? known;
    const facts = { brand, country, lastFourDigit, expiryMonth, expiryYear };
    // A removed PENDING method stays PENDING: the gateway declines its first use.
    const status: PaymentMethodStatus =
      card === null && known.status === 'LIVE' ? 'DELETED' : known.status;
    const isSame = Object.entries({ ...facts, status }).every(
      ([field, value]) => known[field as keyof typeof known] === value,
    );
    if (isSame) return false;
    await tx
      .update(paymentMethods)
      .set({ ...facts, status })
      .where(isMethod);
    if (status === 'PENDING') return true;
    const draft = {
      at: nowAt,
      paymentMethodId: known.id,
      customerId: known.customerId,
      status,
      card: facts,
    };
    // Several subscriptions may use one method, so its events have a stream of their own.
    await appendEvents(tx, { merchantId: ref.merchantId, streamId: known.id }, [
      {
        type: 'setup_method.updated',
        occurredAt: nowAt,
        body: (envelope) => methodEventBody(draft, envelope),
      },
    ]);
    return true;
  });
}
