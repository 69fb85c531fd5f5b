import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { sql } from 'drizzle-orm';
import { expect } from 'vitest';
import { SESSION } from '../support/card-tokens.ts';
import { onDevServer } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { paidOnClock, payCheckout } from '../support/pay-checkout.ts';
import { enterAccount, tokenAtStripe } from '../support/stripe-merchant.ts';
import { startStripe } from '../support/stripe.ts';
import { createEnvironment } from '../support/test-environment.ts';
import { SECRET } from '../support/webhook-environment.ts';
import { startWebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';

/**
 * Counts a worker's gateway requests and database calls for each renewal. docs/performance.md states both
 * numbers. A database call is a statement, a BEGIN or a COMMIT.
 */

const test = onDevServer.extend('counted', async ({ server }, { onCleanup }) => {
  const stripe = await startStripe();
  let calls = 0;
  const env = await createEnvironment(server, {
    stripeUrl: stripe.proxy.url,
    onStatement: () => (calls += 1),
  });
  const requests: string[] = [];
  const gateways = [env.gatewayPlace.url, stripe.proxy.url];
  const onRequest = (message: unknown) => {
    const { request } = message as { request: { origin: string; method: string; path: string } };
    if (!gateways.includes(request.origin) || request.path.startsWith('/control')) return;
    requests.push(`${request.method} ${request.path.replaceAll(/pi_\w+/g, '*')}`);
  };
  subscribe('undici:request:create', onRequest);
  onCleanup(async () => {
    unsubscribe('undici:request:create', onRequest);
    await env.close();
    await stripe.close();
  });

  /**
   * Renews a new monthly subscription `renewals` times. Returns the gateway requests and the number of
   * database calls of the whole advance of the test clock.
   */
  const renew = async (renewals: number, token?: string) => {
    const createdAt = Date.parse('2027-01-01T00:00:00Z');
    const clock = await env.createClock(createdAt);
    const ref = await env.create({ createdAt, testClockId: clock, terms: { cycleCount: 100 } });
    await payCheckout(env, ref, token);
    requests.length = 0;
    calls = 0;
    await env.advance(clock, Date.UTC(2027, renewals, 1, 1));
    expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: renewals + 1 });
    return { requests: [...requests], calls };
  };
  /**
   * Expects this cost of one renewal: the last two requests to the gateway, and the database calls. These are a tenth
   * of the difference between 12 and 2 renewals, so that the other calls of an advance of the test clock do not count.
   *
   * A charge that takes longer than 3 s is repeated on the task queue, which costs more calls. So on a busy machine the
   * cost is measured more than once, and the cheapest advances count.
   */
  const expectCost = async (cost: object, token: () => Promise<string | undefined>) => {
    const cheapest = { few: Infinity, more: Infinity, gateway: [] as string[] };
    await eventually(async () => {
      const few = await renew(2, await token());
      const more = await renew(12, await token());
      cheapest.few = Math.min(cheapest.few, few.calls);
      if (more.calls < cheapest.more) {
        Object.assign(cheapest, { more: more.calls, gateway: more.requests.slice(-2) });
      }
      const { gateway } = cheapest;
      expect({ database: (cheapest.more - cheapest.few) / 10, gateway }).toEqual(cost);
    });
  };
  return { env, stripe, expectCost };
});

test('a renewal at the sandbox makes one request and twelve database calls', async ({
  counted,
}) => {
  await counted.expectCost(
    { database: 12, gateway: ['POST /v1/charges', 'POST /v1/charges'] },
    async () => undefined,
  );
});

test('a renewal at Stripe makes two requests and thirteen database calls', async ({
  counted: { env, stripe, expectCost },
}) => {
  await enterAccount(env, await stripe.account());
  await expectCost(
    { database: 13, gateway: ['POST /v1/payment_intents', 'POST /v1/payment_intents/*/confirm'] },
    () => tokenAtStripe(env, SESSION),
  );
});

test('the opening of an attempt changes no indexed column of its subscription, and its page has room for the change', async ({
  counted: { env },
}) => {
  const { ref, clock } = await paidOnClock(env, '2025-01-01T00:00:00Z');
  await env.db.execute(sql`
    create table seen (version int, changed text);
    create function see() returns trigger language plpgsql as $$
      begin
        insert into seen select new.version, string_agg(key, '|' order by key)
          from jsonb_each(to_jsonb(old)) o join jsonb_each(to_jsonb(new)) n using (key)
          where o.value <> n.value;
        return null;
      end $$;
    create trigger see after update on subscription for each row execute function see()`);
  await env.advance(clock, Date.parse('2025-02-01T01:00:00Z'));
  const { version } = await env.state(ref);
  const [opening] = await env.db.execute<{ changed: string }>(sql`
    select changed from seen where version = ${version - 1}`);
  expect(opening).toEqual({ changed: 'last_transition_id|state|updated_at|version' });
  const indexes = await env.db.execute<{ definition: string }>(sql`
    select pg_get_indexdef(indexrelid) as definition from pg_index
    where indrelid = 'subscription'::regclass`);
  const isChanged = new RegExp(`\\b(${opening?.changed})\\b`);
  expect(indexes.filter(({ definition }) => isChanged.test(definition))).toEqual([]);
  expect([
    ...(await env.db.execute(sql`select reloptions from pg_class where relname = 'subscription'`)),
  ]).toEqual([{ reloptions: '{fillfactor=70}' }]);
});

test('the first task of a new subscription runs an activity only if an endpoint waits for its events', async ({
  counted,
}) => {
  const { env } = counted;
  /** The local activities of a run that has just gone to sleep. */
  const activitiesOf = async () => {
    const { subscriptionId } = await env.create({ createdAt: Date.now() });
    const handle = env.client.workflow.getHandle(subscriptionWorkflowId(subscriptionId));
    return eventually(async () => {
      const { events } = await handle.fetchHistory();
      expect(events?.at(-1)?.timerStartedEventAttributes).toBeTruthy();
      return events?.filter((event) => event.markerRecordedEventAttributes).length;
    });
  };
  expect(await activitiesOf()).toBe(0);
  const receiver = await startWebhookReceiver({ secrets: [SECRET] });
  try {
    await env.subscribe(receiver.url, SECRET);
    expect(await activitiesOf()).toBe(1);
    const received = await receiver.waitFor(2);
    expect(received.map(({ event }) => event.eventType)).toEqual([
      'intent.created',
      'subscription.created',
    ]);
  } finally {
    await receiver.close();
  }
});
