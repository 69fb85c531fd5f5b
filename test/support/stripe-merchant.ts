import { randomInt } from 'node:crypto';
import { merchantGateways } from '../../db/schema/merchants.ts';
import type { MerchantMode } from '../../db/schema/merchants.ts';
import { accountBinding } from '../../gateways/merchant-gateways.ts';
import { SESSION } from './card-tokens.ts';
import type { Payments } from './payments.ts';
import { cardEntry, submitCard } from './stripe.ts';
import type { StripeWorld } from './stripe.ts';
import type { TestEnvironment } from './test-environment.ts';

type Account = Awaited<ReturnType<StripeWorld['account']>>;

/** Stores a Stripe account of the environment's merchant as the current account, as the operator's command does. */
export async function enterAccount(
  env: Pick<TestEnvironment, 'db' | 'merchantId' | 'sealing'>,
  account: Account,
  mode: MerchantMode = 'test',
): Promise<void> {
  const { db, merchantId, sealing } = env;
  const name = `stripe:${account.id}`;
  const secret = sealing.seal(account.secretKey, accountBinding(merchantId, name));
  await db.insert(merchantGateways).values({
    merchantId,
    name,
    mode,
    sealedKey: secret,
    keyEnding: account.secretKey.slice(-4),
    isCurrent: true,
    createdAt: Date.now(),
    updatedAt: Date.now(),
  });
}

/** Enters a card on Stripe's page for a checkout session. Returns the token with which the payer returns. */
export async function tokenAtStripe(
  { gateways, merchantId }: TestEnvironment,
  session: string,
  number = '4242424242424242',
): Promise<string> {
  const gateway = await gateways.forNewMethods(merchantId);
  // With the same number of tries, two calls within a minute get the same page.
  const opened = await gateway.openCardEntry?.(cardEntry({ session, tries: randomInt(1_000_000) }));
  if (opened?.kind !== 'redirect') throw new Error('no card page was opened');
  const { location } = await submitCard(opened.url, number);
  return new URL(String(location)).searchParams.get('payment_token') ?? '';
}

/** Saves a card on Stripe's page. Returns the ids that a charge request names, and the setup method's id. */
export async function saveCardAtStripe(env: TestEnvironment, payments: Payments, number?: string) {
  const { customerId, ...session } = await payments.setup();
  const saved = await env.activities.saveSetupMethod({
    ...session,
    token: {
      paymentToken: await tokenAtStripe(env, SESSION, number),
      checkoutSessionId: SESSION,
    },
    nowAt: Date.now(),
  });
  if (saved.kind !== 'saved') throw new Error(`the card was not saved: ${saved.kind}`);
  return { customerId, pmId: saved.paymentMethodId, setupMethodId: session.setupMethodId };
}
