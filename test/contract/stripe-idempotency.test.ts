import { spawn } from 'node:child_process';
import { once } from 'node:events';
import postgres from 'postgres';
import { describe, expect, vi } from 'vitest';
import { freePort } from '../../tools/embedded/ports.ts';
import { STORED_500_HEADER } from '../../tools/stripe-double/api.ts';
import { createStripeDouble } from '../../tools/stripe-double/server.ts';
import { onStripe as it, prepare, refusalOf, savedCard } from '../support/stripe.ts';

const WAIT = { timeout: 60_000, interval: 50 };

const offSession = { off_session: true } as const;

/** With a fetch client, `headers` of stripe-node is a `Headers`, which contradicts stripe-node's type. */
const header = (answer: { lastResponse: { headers: unknown } }, name: string) =>
  (answer.lastResponse.headers as Headers).get(name);

/** The number of rows of a key whose request is in progress. */
async function claimsOf(databaseUrl: string, key: string): Promise<number> {
  const sql = postgres(databaseUrl, { max: 1 });
  const rows = await sql`
    select 1 from stripe_double.idempotency where key = ${key} and status is null`;
  await sql.end();
  return rows.length;
}

describe('an Idempotency-Key of the Stripe double', () => {
  it('gives the first answer to each repeat', async ({ world }) => {
    const { stripe } = world;
    const saved = await savedCard(stripe);
    const first = await prepare(stripe, saved, {}, { idempotencyKey: 'prepare:1' });
    expect(header(first, 'idempotent-replayed')).toBeNull();
    const repeat = await prepare(stripe, saved, {}, { idempotencyKey: 'prepare:1' });
    expect(repeat.id).toBe(first.id);
    expect(header(repeat, 'idempotent-replayed')).toBe('true');
    expect(header(repeat, 'original-request')).toBe(header(first, 'request-id'));
    expect(await stripe.paymentIntents.list({ customer: saved.customer })).toMatchObject({
      data: [{ id: first.id }],
      has_more: false,
    });
  });

  it('can be used again after the double was killed during its request', async ({
    world,
    onTestFinished,
  }) => {
    const { stripe, doubleOptions, secretKey, files, mock } = world;
    const intent = await prepare(stripe, await savedCard(stripe));
    const path = `/v1/payment_intents/${intent.id}/confirm`;
    const port = await freePort();
    const args = [`--stripe-mock-url=${mock.url}`, `--spec-file=${files.specFile}`];
    const main = ['--import', 'tsx', 'tools/stripe-double/main.ts', ...args];
    const child = spawn(process.execPath, main, {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: {
        ...process.env,
        DATABASE_URL: doubleOptions.databaseUrl,
        GATEWAY_KEY: doubleOptions.controlKey,
        STRIPE_DOUBLE_PORT: String(port),
      },
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child, 'message');
    const post = (route: string, bearer: string, headers: object, body: string) =>
      fetch(`http://127.0.0.1:${port}${route}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${bearer}`, ...headers },
        body,
      });
    const type = { 'content-type': 'application/json' };
    const hold = JSON.stringify({ path, count: 1 });
    await post('/control/holds', doubleOptions.controlKey, type, hold);
    const key = { 'idempotency-key': 'killed:1' };
    const form = { ...key, 'content-type': 'application/x-www-form-urlencoded' };
    const lost = post(path, secretKey, form, 'off_session=true').catch((reason: unknown) => reason);
    const confirm = () =>
      stripe.paymentIntents.confirm(intent.id, offSession, { idempotencyKey: 'killed:1' });
    // The double of the other tests uses the same database, so it refuses the claimed key, too.
    await vi.waitUntil(
      async () => (await claimsOf(doubleOptions.databaseUrl, 'killed:1')) === 1,
      WAIT,
    );
    expect(await refusalOf(confirm())).toMatchObject({ statusCode: 409 });
    child.kill('SIGKILL');
    expect(await lost).toEqual(new TypeError('fetch failed'));

    const next = await createStripeDouble(doubleOptions);
    await next.close();
    expect((await confirm()).status).toBe('succeeded');
    expect((await stripe.charges.list({ payment_intent: intent.id })).data).toHaveLength(1);
  });

  it('is refused for other parameters in the same account but accepted in another account', async ({
    world,
  }) => {
    const { stripe } = world;
    const options = { idempotencyKey: 'prepare:2' };
    const create = (amount: number) =>
      stripe.paymentIntents.create({ amount, currency: 'usd' }, options);
    await create(500);
    expect(await refusalOf(create(501))).toMatchObject({
      statusCode: 400,
      rawType: 'idempotency_error',
      message:
        "Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than 'prepare:2' if you meant to execute a different request.",
    });
    const other = await world.account();
    expect(
      await other.stripe.paymentIntents.create({ amount: 501, currency: 'usd' }, options),
    ).toMatchObject({ amount: 501 });
  });

  it('is answered 409 and leaves the intent unconfirmed when a repeat comes while its request is in progress', async ({
    world,
  }) => {
    const { stripe, control } = world;
    const intent = await prepare(stripe, await savedCard(stripe));
    const path = `/v1/payment_intents/${intent.id}/confirm`;
    const confirm = () =>
      stripe.paymentIntents.confirm(intent.id, offSession, { idempotencyKey: 'confirm:1' });
    await control('POST', 'holds', { path, count: 1 });
    const running = confirm();
    await vi.waitUntil(async () => (await control('GET', 'holds'))['held'] === 1, WAIT);
    // stripe-node reports every 409 as StripeAPIError.
    expect(await refusalOf(confirm())).toMatchObject({
      statusCode: 409,
      rawType: 'idempotency_error',
      code: 'idempotency_key_in_use',
      error: { type: 'StripeAPIError' },
    });
    expect((await stripe.paymentIntents.retrieve(intent.id)).status).toBe('requires_confirmation');
    await control('POST', 'holds/release', {});
    expect((await running).status).toBe('succeeded');
    expect((await confirm()).status).toBe('succeeded');
    expect((await stripe.charges.list({ payment_intent: intent.id })).data).toHaveLength(1);
  });

  it.for([
    ['done', 'succeeded', 1],
    ['none', 'requires_confirmation', 0],
  ] as const)(
    'replays a stored 500 whose effect is %s',
    async ([effect, status, charges], { world }) => {
      const { stripe, faults } = world;
      const intent = await prepare(stripe, await savedCard(stripe));
      const confirm = (key: string) =>
        stripe.paymentIntents.confirm(intent.id, offSession, {
          idempotencyKey: `${intent.id}:${key}`,
        });
      await faults('POST', 'faults', {
        fault: 'add_headers',
        headers: { [STORED_500_HEADER]: effect },
        path: '/v1/payment_intents/*/confirm',
        count: 1,
      });
      const stored = { statusCode: 500, rawType: 'api_error' };
      expect(await refusalOf(confirm('a'))).toMatchObject(stored);
      expect(await refusalOf(confirm('a'))).toMatchObject(stored);
      expect((await stripe.paymentIntents.retrieve(intent.id)).status).toBe(status);
      expect((await stripe.charges.list({ payment_intent: intent.id })).data).toHaveLength(charges);
      // After a stored 500, a client must look up the intent and confirm it under a new key.
      if (effect === 'none') expect((await confirm('b')).status).toBe('succeeded');
      else
        expect(await refusalOf(confirm('b'))).toMatchObject({
          code: 'payment_intent_unexpected_state',
        });
      expect((await stripe.charges.list({ payment_intent: intent.id })).data).toHaveLength(1);
    },
  );

  it('stores a decline, but neither the refusal of a parameter nor a 429', async ({ world }) => {
    const { stripe, faults } = world;
    const intent = await prepare(stripe, await savedCard(stripe, '4000000000000341'));
    const confirm = () =>
      stripe.paymentIntents.confirm(intent.id, offSession, { idempotencyKey: 'declined:1' });
    await faults('POST', 'faults', {
      fault: 'answer',
      status: 429,
      body: {
        error: { type: 'invalid_request_error', code: 'rate_limit', message: 'Too many requests' },
      },
      method: 'POST',
      count: 2,
    });
    for (let time = 0; time < 2; time += 1) {
      expect(await refusalOf(confirm())).toMatchObject({
        statusCode: 429,
        error: { type: 'StripeRateLimitError' },
      });
    }
    expect(await refusalOf(confirm())).toMatchObject({ statusCode: 402 });
    const replay = await refusalOf(confirm());
    expect(replay).toMatchObject({
      statusCode: 402,
      error: { headers: { 'idempotent-replayed': 'true' } },
    });
    expect((await stripe.charges.list({ payment_intent: intent.id })).data).toHaveLength(1);

    const bad = { colour: 'red', amount: 500, currency: 'usd' } as {
      amount: number;
      currency: string;
    };
    const options = { idempotencyKey: 'bad:1' };
    expect(await refusalOf(stripe.paymentIntents.create(bad, options))).toMatchObject({
      statusCode: 400,
      message: expect.stringContaining('additional properties are not allowed'),
    });
    expect(
      await stripe.paymentIntents.create({ amount: 500, currency: 'usd' }, options),
    ).toMatchObject({ amount: 500 });
    expect(await faults('DELETE', 'faults')).toEqual({ faults: [] });
  });
});

describe('an account of the Stripe double', () => {
  it('is found by its secret key and sees only its own objects', async ({ world }) => {
    const { stripe } = world;
    const other = await world.account();
    expect(await other.stripe.accounts.retrieveCurrent()).toMatchObject({
      id: other.id,
      object: 'account',
    });
    const customer = await stripe.customers.create({ email: 'ada@example.com' });
    expect(await stripe.customers.retrieve(customer.id)).toMatchObject({
      email: 'ada@example.com',
    });
    expect(await refusalOf(other.stripe.customers.retrieve(customer.id))).toMatchObject({
      statusCode: 404,
      code: 'resource_missing',
      message: `No such customer: '${customer.id}'`,
    });
    const asParameter = other.stripe.paymentIntents.create({
      amount: 500,
      currency: 'usd',
      customer: customer.id,
    });
    expect(await refusalOf(asParameter)).toMatchObject({
      statusCode: 400,
      code: 'resource_missing',
      param: 'customer',
    });
  });

  it('is refused for an unknown secret key, and for an account of another platform', async ({
    world,
  }) => {
    const stranger = world.client('sk_test_unknown_key_0001');
    expect(await refusalOf(stranger.accounts.retrieveCurrent())).toMatchObject({
      statusCode: 401,
      message: 'Invalid API Key provided: sk_test_********0001',
    });
    const connected = await world.account({ platformId: world.id });
    const options = { stripeAccount: connected.id };
    expect(await world.stripe.accounts.retrieveCurrent({}, options)).toMatchObject({
      id: connected.id,
    });
    const foreign = await world.account();
    expect(
      await refusalOf(world.stripe.accounts.retrieveCurrent({}, { stripeAccount: foreign.id })),
    ).toMatchObject({ statusCode: 403, code: 'account_invalid' });
  });
});
