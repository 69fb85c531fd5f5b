import { describe, expect, vi } from 'vitest';
import { createFaultProxy } from '../../tools/fault-proxy/proxy.ts';
import { onStripe as it, prepare, refusalOf, savedCard } from '../support/stripe.ts';
import type { StripeWorld } from '../support/stripe.ts';

/** The fault proxy stands between a client and the Stripe double, and disturbs requests that match a fault. */
const CONFIRM = { method: 'POST', path: '/v1/payment_intents/*/confirm', count: 1 };

const WAIT = { timeout: 60_000, interval: 50 };

/**
 * Confirms a prepared payment while a fault is set. Returns the error, and functions that return the hits of the fault
 * and the number of charges.
 */
const confirmWith = async (
  world: StripeWorld,
  fault: Record<string, unknown>,
  timeoutMs = 20_000,
) => {
  const { stripe, faults } = world;
  const intent = await prepare(stripe, await savedCard(stripe));
  await faults('DELETE', 'faults');
  await faults('POST', 'faults', { ...CONFIRM, ...fault });
  const impatient = world.client(world.secretKey, timeoutMs);
  const confirm = impatient.paymentIntents.confirm(intent.id, { off_session: true });
  const { error } = await refusalOf(confirm);
  const hits = async () => {
    const listed = (await faults('GET', 'faults'))['faults'] as { hits: number }[];
    return listed.map((each) => each.hits);
  };
  const charges = async () =>
    (await stripe.charges.list({ payment_intent: intent.id })).data.length;
  return { error, charges, hits };
};

describe('the fault proxy in front of the Stripe double', () => {
  it.for([
    [{ fault: 'lose_answer' }, 1],
    [{ fault: 'lose_request' }, 0],
    [{ fault: 'reset', effect: 'done' }, 1],
    [{ fault: 'reset' }, 0],
    [{ fault: 'hang', effect: 'done' }, 1],
    [{ fault: 'hang' }, 0],
  ] as const)(
    'gives the client no answer with the fault %j; the double then has %i charges',
    async ([fault, charges], { world }) => {
      const timeoutMs = fault.fault === 'hang' ? 500 : 20_000;
      const result = await confirmWith(world, fault, timeoutMs);
      expect(result.error).toMatchObject({ type: 'StripeConnectionError' });
      // One hit: the client has not sent the request twice. A client that times out may do so before the hit.
      await expect.poll(result.hits).toEqual([1]);
      await vi.waitUntil(async () => (await result.charges()) === charges, WAIT);
    },
  );

  it.for([
    [{ status: 429, effect: 'none' }, 'StripeRateLimitError', 0],
    [{ status: 409, effect: 'none' }, 'StripeAPIError', 0],
    [{ status: 500, effect: 'done' }, 'StripeAPIError', 1],
  ] as const)(
    'answers %j instead of the double; stripe-node reports the answer as %s',
    async ([fault, type, charges], { world }) => {
      const body = { error: { type: 'api_error', message: 'ordered' } };
      const result = await confirmWith(world, { fault: 'answer', body, ...fault });
      expect(result.error).toMatchObject({ type, statusCode: fault.status, message: 'ordered' });
      expect(await result.hits()).toEqual([1]);
      expect(await result.charges()).toBe(charges);
    },
  );

  it('forwards a delayed request even if its client has closed the connection', async ({
    world,
  }) => {
    const fault = { fault: 'delay', delayMs: 1_500 };
    const { error, charges } = await confirmWith(world, fault, 500);
    expect(error).toMatchObject({ type: 'StripeConnectionError' });
    await vi.waitUntil(async () => (await charges()) === 1, WAIT);
  });

  it('applies a fault with a chance below 1 to a share of the requests of one method and path', async ({
    world,
  }) => {
    const { stripe, faults } = world;
    await faults('DELETE', 'faults');
    await faults('POST', 'faults', {
      fault: 'answer',
      status: 429,
      body: { error: { type: 'invalid_request_error', message: 'storm' } },
      method: 'GET',
      path: '/v1/customers',
      chance: 0.5,
      count: 1_000,
    });
    const results = await Promise.allSettled(
      Array.from({ length: 40 }, () => stripe.customers.list({ limit: 1 })),
    );
    // The probability of 40 equal outcomes is 1 in 2 ** 39.
    expect(new Set(results.map(({ status }) => status))).toEqual(
      new Set(['fulfilled', 'rejected']),
    );
    const rejected = results.filter(({ status }) => status === 'rejected').length;
    expect(await faults('GET', 'faults')).toMatchObject({ faults: [{ hits: rejected }] });
    expect((await stripe.customers.create()).object).toBe('customer');
    expect(await faults('DELETE', 'faults')).toEqual({ faults: [] });
    expect((await stripe.customers.list({ limit: 1 })).object).toBe('list');
  });

  it('refuses a wrong fault, refuses a missing key, and answers 502 when its target is unreachable', async ({
    world,
  }) => {
    const { faults, proxy } = world;
    const wrong = { fault: 'lose_answer', count: 0 };
    await expect(faults('POST', 'faults', wrong)).rejects.toThrow('count must be');
    await expect(faults('POST', 'faults', { fault: 'x', count: 1 })).rejects.toThrow(
      'fault must be',
    );
    expect((await fetch(`${proxy.url}/control/faults`)).status).toBe(401);
    const alone = await createFaultProxy({ targetUrl: 'http://127.0.0.1:9', controlKey: 'k' });
    expect((await fetch(`${alone.url}/v1/account`)).status).toBe(502);
    await alone.close();
  });
});
