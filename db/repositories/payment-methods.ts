import { and, eq } from 'drizzle-orm';
import type { EventCard } from '../../domain/events.ts';
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
