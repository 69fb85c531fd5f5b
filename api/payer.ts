import type { Db } from '../db/client.ts';
import { findCustomer, insertCustomer } from '../db/repositories/customers/customers.ts';
import type { CustomerDetails } from '../domain/customer.ts';
import { newId } from '../domain/ids.ts';
import { found } from './answers.ts';
import type { ApiDeps } from './deps.ts';

/**
 * Returns the id of the request's customer. If the request has no customer id, creates a customer from the
 * details, inside the caller's transaction.
 *
 * @throws DomainError `resource_not_found` if the merchant has no such customer.
 */
export async function payerOf(
  tx: Db,
  { now, random }: Pick<ApiDeps, 'now' | 'random'>,
  merchantId: string,
  given: { customerId?: string | undefined; details: CustomerDetails },
): Promise<string> {
  const { customerId, details } = given;
  if (customerId !== undefined) {
    const customer = found(await findCustomer(tx, merchantId, customerId), 'customer');
    return customer.id;
  }
  const createdAt = now();
  const id = newId('cus', createdAt, random);
  await insertCustomer(tx, { merchantId, id, details, createdAt });
  return id;
}
