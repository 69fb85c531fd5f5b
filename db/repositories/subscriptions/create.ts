import { created } from '../../../domain/subscription/change.ts';
import { initialJitter, newSubscription } from '../../../domain/subscription/state.ts';
import type { NewSubscription, SubscriptionState } from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { insertSession } from '../checkouts/sessions.ts';
import type { NewCheckout } from '../checkouts/sessions.ts';
import { loadSettings } from '../merchants/settings.ts';
import { withoutCommand, writeChange } from './write-change.ts';
import type { SubscriptionOrder } from './write-change.ts';

/**
 * Writes a new subscription inside the caller's transaction: row, first intent (none with a trial), events, checkout
 * session. The caller must start the workflow after the commit, else the sweep does.
 */
export async function createSubscription(
  tx: Db,
  subscription: Omit<NewSubscription, 'jitter'>,
  order: SubscriptionOrder,
  checkout: NewCheckout,
): Promise<SubscriptionState> {
  const settings = await loadSettings(tx, subscription.merchantId);
  const jitter = initialJitter(subscription, settings.jitterMs ?? null);
  const state = newSubscription({ ...subscription, jitter });
  const { merchantId, subscriptionId, createdAt, checkoutExpiresAt: expiresAt } = state;
  await writeChange(tx, withoutCommand(created(state), createdAt), { creates: order });
  await insertSession(tx, { ...checkout, merchantId, subscriptionId, expiresAt, createdAt });
  return state;
}
