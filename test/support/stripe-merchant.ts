import { randomInt } from 'node:crypto';
import { eq } from 'drizzle-orm';
import { merchantGateways } from '../../db/schema/merchants.ts';
import { paymentAttempts } from '../../db/schema/payments.ts';
import type { MerchantMode } from '../../db/schema/merchants.ts';
import { accountBinding } from '../../gateways/merchant-gateways.ts';
import { SESSION } from './card-tokens.ts';
import type { Payments } from './payments.ts';
import { openShop } from './shop.ts';
import { cardEntry, onStripe, submitConfirmedCard } from './stripe.ts';
import type { StripeWorld } from './stripe.ts';
import { connectDevServer } from './temporal-servers.ts';
import { createEnvironment } from './test-environment.ts';
import type { TestEnvironment } from './test-environment.ts';

const file = { scope: 'file' } as const;

/** As `onStripe`, with an environment and a shop for each file, whose Stripe is the double. */
export const onStripeShop = onStripe
  // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
  .extend('server', file, async ({}, { onCleanup }) => {
    const server = await connectDevServer();
    onCleanup(() => server.teardown());
    return server;
  })
  .extend('env', file, async ({ server, world }, { onCleanup }) => {
    const env = await createEnvironment(server, { stripeUrl: world.proxy.url });
    onCleanup(() => env.close());
    return env;
  })
  .extend('shop', file, async ({ env }, { onCleanup }) => {
    const shop = await openShop(env);
    onCleanup(() => shop.close());
    return shop;
  });

type Account = Pick<StripeWorld, 'id' | 'secretKey'>;

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

/**
 * Enters a card on Stripe's page for a checkout session, and confirms the card if its bank asks for it. Returns the token
 * with which the payer returns. `gateway`: the name of an account. Default: the current account.
 */
export async function tokenAtStripe(
  { gateways, merchantId }: TestEnvironment,
  session: string,
  number = '4242424242424242',
  gateway: string | null = null,
): Promise<string> {
  const { openCardEntry } = await (gateway === null
    ? gateways.forNewMethods(merchantId)
    : gateways.of(merchantId, gateway));
  // With the same number of tries, two calls within a minute get the same page.
  const opened = await openCardEntry?.(cardEntry({ session, tries: randomInt(1_000_000) }));
  if (opened?.kind !== 'redirect') throw new Error(`no page: ${opened?.kind}`);
  const { location, html } = await submitConfirmedCard(opened.url, number);
  const token = location === null ? null : new URL(location).searchParams.get('payment_token');
  if (token === null) throw new Error(`the card was not taken: ${html}`);
  return token;
}

/** Status and received amount of the PaymentIntents of an intent or a subscription at Stripe, oldest first. */
export async function atStripe({ stripe }: StripeWorld, id: string): Promise<string[]> {
  const { data } = await stripe.paymentIntents.list({ limit: 100 });
  return data
    .filter(({ metadata }) => [metadata['intentId'], metadata['subscriptionId']].includes(id))
    .toReversed()
    .map(({ status, amount_received: received }) => `${status} ${received}`);
}

/** Makes the payer's time at the bank pass: 20 min in the row of each attempt of the intent. */
export async function passTwentyMinutes({ db }: TestEnvironment, intentId: string): Promise<void> {
  await db
    .update(paymentAttempts)
    .set({ payerAskedAt: Date.now() - 1_200_000 })
    .where(eq(paymentAttempts.intentId, intentId));
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
