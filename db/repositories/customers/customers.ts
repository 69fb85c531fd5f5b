import { and, exists, isNotNull, notInArray, or } from 'drizzle-orm';
import { emailNormalForm } from '../../../domain/email.ts';
import { isId } from '../../../domain/ids.ts';
import type { Db } from '../../client.ts';
import { customers } from '../../schema/customers.ts';
import { paymentIntents } from '../../schema/payments.ts';
import { subscriptions } from '../../schema/subscriptions.ts';
import { findRecord, hasValues, isRecord } from '../records.ts';

export type Customer = Omit<typeof customers.$inferSelect, 'normalEmail'>;

export async function insertCustomer(db: Db, customer: Customer): Promise<void> {
  await db
    .insert(customers)
    .values({ ...customer, normalEmail: emailNormalForm(customer.details.email) });
}

export const findCustomer = (db: Db, merchantId: string, id: string) =>
  findRecord(db, customers, merchantId, id);

/**
 * Replaces the fields that are given; an address is one field. Subscriptions and intents keep their own copies. Null for
 * an unknown customer.
 */
export async function updateCustomer(
  tx: Db,
  { merchantId, id, details }: Omit<Customer, 'createdAt'>,
): Promise<Customer | null> {
  if (!isId('cus', id)) return null;
  const isCustomer = isRecord(customers, merchantId, id);
  const [known] = await tx.select().from(customers).where(isCustomer).for('update');
  if (!known) return null;
  const merged = { ...known.details, ...details };
  const changed = { details: merged, normalEmail: emailNormalForm(merged.email) };
  await tx.update(customers).set(changed).where(isCustomer);
  return { ...known, ...changed };
}

/**
 * Returns SQL conditions on a customer. `isSubscriber`: a subscription is running. `isPayer`: that, or something was paid.
 * An unpaid checkout does not count, because a stranger can open one with any address.
 */
export function payerConditions(db: Db) {
  const own = { merchantId: customers.merchantId, customerId: customers.id };
  const running = db
    .select({ id: subscriptions.id })
    .from(subscriptions)
    .where(
      and(hasValues(subscriptions, own), notInArray(subscriptions.status, ['CREATED', 'ENDED'])),
    );
  const paid = db
    .select({ id: paymentIntents.id })
    .from(paymentIntents)
    .where(and(hasValues(paymentIntents, own), isNotNull(paymentIntents.succeededAt)));
  const isSubscriber = exists(running);
  return { isSubscriber, isPayer: or(isSubscriber, exists(paid)) };
}
