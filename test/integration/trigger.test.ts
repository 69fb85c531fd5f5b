import { expect } from 'vitest';
import { createClient } from '../../client/index.ts';
import { RECIPES } from '../../tools/scripts/trigger/recipes.ts';
import { onDevServer as test } from '../support/environment.ts';

/** The types that happen without an account at Stripe. */
const TYPES = [
  'intent.checkout_opened',
  'intent.created',
  'intent.failed',
  'intent.refunded',
  'intent.success',
  'subscription.trialing',
  'subscription.cycle_charged',
  'subscription.created',
  'subscription.checkout_opened',
  'subscription.active',
  'subscription.unpaid',
  'subscription.retries_exhausted',
  'subscription.paused',
  'subscription.ended',
  'subscription.edited',
  'subscription.cancel_scheduled',
  'subscription.resumed',
  'subscription.renewal_upcoming',
  'subscription.trial_ending',
  'subscription.amount_changing',
  'payment_method.expiring',
  'setup_method.success',
  'cancellation.received',
  'withdrawal.received',
  'customer.portal_requested',
  'webhook.deactivated',
] as const;

test('trigger makes each event type happen, and says which ones need Stripe [D-50, D-60]', async ({
  shop,
}) => {
  const { API_URL: apiUrl, KEY_ID: keyId, SECRET: secret } = shop.variables;
  const scene = { client: createClient({ apiUrl, keyId, secret }), demo: undefined };
  for (const type of TYPES) {
    const before = shop.receiver.received.length;
    await RECIPES[type](scene);
    await expect
      .poll(() => shop.receiver.received.slice(before).map(({ event }) => event.eventType))
      .toContain(type);
  }
  const others = Object.entries(RECIPES).filter(([type]) => !TYPES.some((it) => it === type));
  for (const [, recipe] of others) {
    await expect(recipe(scene)).rejects.toThrow(
      /^(Only an account at Stripe|An endpoint must fail for 60 )/,
    );
  }
  expect(others.map(([type]) => type)).toEqual([
    'intent.refund_failed',
    'intent.disputed',
    'intent.fraud_warning',
    'setup_method.updated',
    'account.charges_blocked',
    'account.charges_resumed',
    'webhook.failing',
  ]);
});
