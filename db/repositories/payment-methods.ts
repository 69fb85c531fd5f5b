import { and, desc, eq, ne } from 'drizzle-orm';
import type { EventCard } from '../../domain/events.ts';
import { isId } from '../../domain/ids.ts';
import type { Db } from '../client.ts';
import { paymentMethods } from '../schema/payment-methods.ts';

export interface NewPaymentMethod {
  merchantId: string;
  id: string;
  customerId: string;
  gateway: string;
  /** As the gateway tells of it. */
  card: EventCard & { gatewayMethodId: string };
  nowAt: number;
}

/**
 * Keeps what the gateway saved, PENDING. The same gateway method again gives the first one's id; null
 * if that belongs to another customer.
 */
export async function savePaymentMethod(db: Db, method: NewPaymentMethod): Promise<string | null> {
  const { merchantId, id, customerId, gateway, card, nowAt } = method;
  await db
    .insert(paymentMethods)
    .values({
      ...card,
      merchantId,
      id,
      customerId,
      gateway,
      kind: 'CARD',
      status: 'PENDING',
      createdAt: nowAt,
    })
    .onConflictDoNothing();
  const [row] = await db
    .select({ id: paymentMethods.id, customerId: paymentMethods.customerId })
    .from(paymentMethods)
    .where(
      and(
        eq(paymentMethods.merchantId, merchantId),
        eq(paymentMethods.gateway, gateway),
        eq(paymentMethods.gatewayMethodId, card.gatewayMethodId),
      ),
    );
  // Not stored, and not this merchant's: another merchant has it.
  return row?.customerId === customerId ? row.id : null;
}

export type PaymentMethod = typeof paymentMethods.$inferSelect;

/** What a customer saved, newest first; not what was never used. Rule: D-§7. */
export async function listPaymentMethods(
  db: Db,
  merchantId: string,
  customerId: string,
): Promise<PaymentMethod[]> {
  return db
    .select()
    .from(paymentMethods)
    .where(
      and(
        eq(paymentMethods.merchantId, merchantId),
        eq(paymentMethods.customerId, customerId),
        ne(paymentMethods.status, 'PENDING'),
      ),
    )
    .orderBy(desc(paymentMethods.createdAt), desc(paymentMethods.id));
}

/** True when this is a method of the merchant's customer that can be charged. Rules: D-21, D-36. */
export async function hasLiveMethod(
  db: Db,
  method: { merchantId: string; customerId: string; id: string },
): Promise<boolean> {
  if (!isId('pmt', method.id)) return false;
  const rows = await db
    .select({ id: paymentMethods.id })
    .from(paymentMethods)
    .where(
      and(
        eq(paymentMethods.merchantId, method.merchantId),
        eq(paymentMethods.id, method.id),
        eq(paymentMethods.customerId, method.customerId),
        eq(paymentMethods.status, 'LIVE'),
      ),
    );
  return rows.length > 0;
}

/** A method that is good from now on, or one that is not used any more. */
export async function setMethodStatus(
  tx: Db,
  merchantId: string,
  id: string,
  status: 'LIVE' | 'DELETED',
): Promise<void> {
  await tx
    .update(paymentMethods)
    .set({ status })
    .where(and(eq(paymentMethods.merchantId, merchantId), eq(paymentMethods.id, id)));
}
