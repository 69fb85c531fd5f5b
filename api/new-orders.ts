import type { Db } from '../db/client.ts';
import { insertPayment } from '../db/repositories/payments/orders.ts';
import type { NewPayment } from '../db/repositories/payments/orders.ts';
import { newId } from '../domain/ids.ts';
import type { ApiDeps } from './deps.ts';
import { createSubscription } from '../db/repositories/subscriptions/create.ts';
import type { SubscriptionOrder } from '../db/repositories/subscriptions/create.ts';
import type { NewSubscription } from '../domain/subscription/state.ts';
import { findCustomer, insertCustomer } from '../db/repositories/customers/customers.ts';
import type { CustomerDetails } from '../domain/customer.ts';
import { found } from './http/request.ts';

/** `token`: the page's token. The caller must wake the intent's stream after the commit. */
export async function writeHostedPayment(
  tx: Db,
  { random, checkoutExpiryMs }: Pick<ApiDeps, 'random' | 'checkoutExpiryMs'>,
  payment: Omit<NewPayment, 'intentId' | 'kind' | 'checkout'>,
  token: string,
): Promise<string> {
  const { nowAt } = payment;
  const intentId = newId('in', nowAt, random);
  const checkout = { id: newId('cs', nowAt, random), token, expiresAt: nowAt + checkoutExpiryMs };
  await insertPayment(tx, { ...payment, intentId, kind: 'hosted', checkout });
  return intentId;
}

type InitialFields = Pick<
  NewSubscription,
  'merchantId' | 'customerId' | 'terms' | 'createdAt' | 'testClockId'
>;

/** `token`: the checkout's token. The caller must start the workflow after the commit. */
export async function writeSubscription(
  tx: Db,
  { now, random, checkoutExpiryMs }: Pick<ApiDeps, 'now' | 'random' | 'checkoutExpiryMs'>,
  fields: InitialFields,
  order: SubscriptionOrder,
  token: string,
): Promise<string> {
  const subscriptionId = newId('sub', now(), random);
  await createSubscription(
    tx,
    {
      ...fields,
      subscriptionId,
      checkoutExpiresAt: fields.createdAt + checkoutExpiryMs,
    },
    order,
    { id: newId('cs', now(), random), token },
  );
  return subscriptionId;
}

/**
 * Returns the id of the request's customer. Without an id, creates a customer in the caller's transaction. Throws
 * `resource_not_found` if the merchant has no such customer.
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
