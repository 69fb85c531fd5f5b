import { emailNormalForm } from '../../../domain/email.ts';
import { isId } from '../../../domain/ids.ts';
import type { Db } from '../../client.ts';
import { customers } from '../../schema/customers.ts';
import { isRecord } from '../is-record.ts';

export type Customer = Omit<typeof customers.$inferSelect, 'normalEmail'>;

export async function insertCustomer(db: Db, customer: Customer): Promise<void> {
  await db
    .insert(customers)
    .values({ ...customer, normalEmail: emailNormalForm(customer.details.email) });
}

/** Returns the merchant's customer; null for an unknown id and for another merchant's id. */
export async function findCustomer(
  db: Db,
  merchantId: string,
  customerId: string,
): Promise<Customer | null> {
  if (!isId('cus', customerId)) return null;
  const [row] = await db
    .select()
    .from(customers)
    .where(isRecord(customers, merchantId, customerId));
  return row ?? null;
}
