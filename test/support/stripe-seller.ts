import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { expect } from 'vitest';
import { changeGateway } from '../../db/repositories/merchants/gateways.ts';
import { checkoutSessions } from '../../db/schema/checkouts.ts';
import { gatewayEvents } from '../../db/schema/gateway-events.ts';
import { accountBinding } from '../../gateways/merchant-gateways.ts';
import { eventually } from './eventually.ts';
import type { Shop } from './shop.ts';
import { tokenAtStripe } from './stripe-merchant.ts';
import { WEBHOOK_SECRET } from './stripe.ts';
import type { StripeWorld } from './stripe.ts';
import type { TestEnvironment } from './test-environment.ts';

/** Gives the environment's merchant an account at the Stripe double, whose events go to the shop's API. */
export async function stripeMerchant(env: TestEnvironment, shop: Shop, world: StripeWorld) {
  const { db, merchantId, sealing } = env;
  const account = await world.account();
  const name = `stripe:${account.id}`;
  const eventsUrl = `${shop.url}/gateways/stripe/events/${account.id}`;
  const { secretKey } = account;
  const sendEventsTo = async (webhookUrl: string): Promise<void> => {
    const webhookSecret = WEBHOOK_SECRET;
    await world.control('POST', 'accounts', { secretKey, webhookUrl, webhookSecret });
  };
  await sendEventsTo(eventsUrl);
  const bound = accountBinding(merchantId, name);
  await changeGateway(db, {
    merchantId,
    name,
    mode: 'test',
    key: { sealed: sealing.seal(secretKey, bound), ending: secretKey.slice(-4) },
    sealedWebhookSecret: sealing.seal(WEBHOOK_SECRET, bound),
    makeCurrent: true,
    nowAt: Date.now(),
  });
  const enter = (session: string, number: string) => tokenAtStripe(env, session, number, name);
  const events = () => db.select().from(gatewayEvents).where(eq(gatewayEvents.gateway, name));
  return {
    account,
    name,
    eventsUrl,
    /** Sets the URL to which Stripe sends the account's events, also those that it has not delivered yet. */
    sendEventsTo,
    /** The rows of the account's stored events. */
    events,
    /** Waits until Stripe has delivered every event, and every stored event is handled. */
    settled: () =>
      eventually(async () => {
        expect(await undelivered(world, account.id)).toEqual([]);
        expect((await events()).filter(({ handledAt }) => handledAt === null)).toEqual([]);
      }),
    /**
     * Enters a card on Stripe's page of the checkout session, as a payer does, and never returns to our page.
     * Returns the token with which the payer would return.
     */
    async enterCard(
      subject: { subscriptionId?: string; setupMethodId?: string; intentId?: string },
      number = '4242424242424242',
    ) {
      const column = (['subscriptionId', 'setupMethodId', 'intentId'] as const).find(
        (name) => subject[name] !== undefined,
      );
      if (!column) throw new Error('no subject');
      const id = String(subject[column]);
      const [session] = await db
        .select({ id: checkoutSessions.id })
        .from(checkoutSessions)
        .where(eq(checkoutSessions[column], id));
      if (!session) throw new Error(`no checkout session of ${id}`);
      return { token: await enter(session.id, number), sessionId: session.id };
    },
    /** Enters a card on a further page that Stripe opens for the checkout session. */
    enterFurtherCard: (sessionId: string) => enter(sessionId, '4242424242424242'),
    /** The merchant's charges at Stripe, oldest first. A slow confirmation is repeated with its key and charges once. */
    async charges(): Promise<string[]> {
      const { charges } = await world.control('GET', 'charges');
      return (charges as Charge[])
        .filter(({ metadata }) => metadata.merchantId === merchantId)
        .map(({ status, amountMinor }) => `${status} ${amountMinor}`);
    },
  };
}

/** The bodies of the account's events that Stripe has not delivered yet. */
async function undelivered({ doubleOptions }: StripeWorld, accountId: string): Promise<string[]> {
  const sql = postgres(doubleOptions.databaseUrl, { max: 1 });
  try {
    const rows = await sql<{ raw_body: string }[]>`
      select raw_body from stripe_double.event_delivery
      where account_id = ${accountId} and state = 'pending'`;
    return rows.map((row) => row.raw_body);
  } finally {
    await sql.end();
  }
}

interface Charge {
  status: string;
  amountMinor: number;
  metadata: { merchantId?: string };
}
