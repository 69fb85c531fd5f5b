import { merchantGateways } from '../../db/schema/merchant-gateways.ts';
import { accountBinding } from '../../gateways/merchant-gateways.ts';
import type { Payments } from './payments.ts';
import { cardEntry, submitCard } from './stripe.ts';
import type { StripeWorld } from './stripe.ts';
import type { TestEnvironment } from './test-environment.ts';

type Account = Awaited<ReturnType<StripeWorld['account']>>;

/** Gives the merchant of the environment a Stripe account, whose row it stores as the operator's command does. */
export async function enterAccount(env: TestEnvironment, account: Account): Promise<void> {
  const { db, merchantId, sealing } = env;
  const name = `stripe:${account.id}`;
  const secret = sealing.seal(account.secretKey, accountBinding(merchantId, name));
  await db.insert(merchantGateways).values({
    merchantId,
    name,
    mode: 'test',
    sealedKey: secret,
    keyEnding: account.secretKey.slice(-4),
    isCurrent: true,
    createdAt: Date.now(),
    updatedAt: Date.now(),
  });
}

/** Saves a card on Stripe's page. Returns the saved method as a merchant charges it. */
export async function saveCardAtStripe(
  env: TestEnvironment,
  payments: Payments,
  number = '4242424242424242',
) {
  const { customerId, ...session } = await payments.setup();
  const gateway = await env.gateways.forNewMethods(env.merchantId);
  const entry = cardEntry();
  const opened = await gateway.openCardEntry?.(entry);
  if (opened?.kind !== 'redirect') throw new Error('no card page was opened');
  const { location } = await submitCard(opened.url, number);
  const paymentToken = new URL(String(location)).searchParams.get('payment_token') ?? '';
  const saved = await env.activities.saveSetupMethod({
    ...session,
    paymentToken,
    checkoutSessionId: entry.session,
    nowAt: Date.now(),
  });
  if (saved.kind !== 'saved') throw new Error(`the card was not saved: ${saved.kind}`);
  return { customerId, pmId: saved.paymentMethodId, setupMethodId: session.setupMethodId };
}
