import type { Db } from '../db/client.ts';
import { insertPayment } from '../db/repositories/payments/orders.ts';
import type { NewPayment } from '../db/repositories/payments/orders.ts';
import { newId } from '../domain/ids.ts';
import type { ApiDeps } from './deps.ts';

/**
 * Writes a hosted payment and the session of its page inside the caller's transaction, and returns the intent's
 * id. `token` is the page's token. The caller must wake the intent's stream after the commit.
 */
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
