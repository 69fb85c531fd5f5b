import { emailNormalForm } from '../../../domain/email.ts';
import type { Db } from '../../client.ts';
import { customers } from '../../schema/customers.ts';
import { findRecord } from '../records.ts';

export type Customer = Omit<typeof customers.$inferSelect, 'normalEmail'>;

export async function insertCustomer(db: Db, customer: Customer): Promise<void> {
  await db
    .insert(customers)
    .values({ ...customer, normalEmail: emailNormalForm(customer.details.email) });
}

export const findCustomer = (db: Db, merchantId: string, id: string) =>
  findRecord(db, customers, merchantId, id);
