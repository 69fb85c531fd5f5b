import type { Db } from '../db/client.ts';
import { createSubscription } from '../db/repositories/subscriptions/create.ts';
import type { SubscriptionOrder } from '../db/repositories/subscriptions/create.ts';
import { newId } from '../domain/ids.ts';
import type { NewSubscription } from '../domain/subscription/state.ts';
import type { ApiDeps } from './deps.ts';

type InitialFields = Pick<
  NewSubscription,
  'merchantId' | 'customerId' | 'terms' | 'createdAt' | 'testClockId'
>;

/**
 * Writes a new subscription and its checkout inside the caller's transaction, and returns the subscription's
 * id. `token` is the checkout's token. The caller must start the workflow after the commit.
 */
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
