import { describe, expect } from 'vitest';
import { freePort } from '../../tools/embedded/ports.ts';
import type { CardEntryRequest } from '../../gateways/port.ts';
import { openCardEntry } from '../../gateways/stripe/card-entry.ts';
import { cardEntry, gatewayOf, onStripe as it, submitCard } from '../support/stripe.ts';
import type { StripeWorld } from '../support/stripe.ts';

const HOUR_MS = 3_600_000;
const OPEN = { method: 'POST', path: '/v1/checkout/sessions' };

async function open(world: StripeWorld, request: CardEntryRequest): Promise<string> {
  const opened = await gatewayOf(world).openCardEntry?.(request);
  if (opened?.kind !== 'redirect') throw new Error(JSON.stringify(opened));
  return opened.url;
}

const sessionAt = ({ stripe }: StripeWorld, url: string) =>
  stripe.checkout.sessions.retrieve(url.split('/').at(-1) ?? '');

/** Enters a card on the page at `url` and returns the saved payment method's id at the gateway. */
async function saveCard(world: StripeWorld, url: string, session: string): Promise<string> {
  const { location } = await submitCard(url, '4242424242424242');
  const token = new URL(location ?? '').searchParams.get('payment_token') ?? '';
  const outcome = await gatewayOf(world).saveMethod({ key: `save:${session}`, token, session });
  if (outcome.kind !== 'saved') throw new Error(JSON.stringify(outcome));
  return outcome.card.gatewayMethodId;
}

describe('a page of Stripe to enter a card', () => {
  it('sends the payer to returnUrl with the session’s id after a card is entered, and has cancelUrl as cancel_url', async ({
    world,
  }) => {
    const request = cardEntry();
    const url = await open(world, request);
    const session = await sessionAt(world, url);
    expect(session).toMatchObject({
      mode: 'setup',
      client_reference_id: request.session,
      customer: null,
      customer_email: 'ada@example.com',
      cancel_url: 'http://127.0.0.1:8080/back',
      locale: 'de',
      custom_text: { submit: { message: 'Acme Ltd · Tea · Today: US$19.99' } },
    });
    const { location } = await submitCard(url, '4242424242424242');
    expect(location).toBe(`http://127.0.0.1:8080/return?state=abc&payment_token=${session.id}`);
  });

  it('has at most 1,200 characters of the text, and in place of Arabic the language of the browser', async ({
    world,
  }) => {
    const text = 'x'.repeat(1_201);
    const session = await sessionAt(world, await open(world, cardEntry({ text, locale: 'ar' })));
    expect(session.locale).toBe('auto');
    expect(session.custom_text.submit?.message).toBe('x'.repeat(1_200));
  });

  it('is the same page for two requests at once, and another page after a tried card or a minute', async ({
    world,
  }) => {
    const request = cardEntry();
    const nowAt = Date.now();
    const open = (changes = {}, timeoutMs = 60_000, atMs = nowAt) =>
      openCardEntry(world.stripe, { ...request, ...changes }, timeoutMs, atMs);
    await world.control('POST', 'holds', { path: OPEN.path, count: 1 });
    const first = open();
    const held = async () => (await world.control('GET', 'holds'))['held'];
    await expect.poll(held).toBe(1);
    // Stripe answers 409 while it executes the first request. A slow answer exceeds the time limit of 3.1 s.
    await expect
      .poll(() => open({}, Date.now() - nowAt + 3_100))
      .toEqual({
        kind: 'unknown',
        reason: 'Stripe answered 409 idempotency_key_in_use',
      });
    const second = open();
    await world.control('POST', 'holds/release', {});
    const opened = await first;
    expect(opened).toEqual({ kind: 'redirect', url: expect.any(String) });
    expect(await second).toEqual(opened);
    for (const other of [await open({ tries: 1 }), await open({}, 60_000, nowAt + 60_000)]) {
      expect(other.kind).toBe('redirect');
      expect(other).not.toEqual(opened);
    }
  });

  it('saves a customer’s second card for the same customer at Stripe', async ({ world }) => {
    const request = cardEntry();
    const method = await saveCard(world, await open(world, request), request.session);
    const [customer = ''] = method.split('/');
    expect(await world.stripe.customers.retrieve(customer)).toMatchObject({
      email: 'ada@example.com',
      name: 'Ada Example',
    });

    const next = cardEntry({ customer: { ...request.customer, gatewayMethodId: method } });
    const other = await saveCard(world, await open(world, next), next.session);
    expect(other).toMatch(new RegExp(`^${customer}/pm_`));
    expect(other).not.toBe(method);
  });

  it('opens for a new customer when the earlier one was deleted at Stripe', async ({ world }) => {
    const gatewayMethodId = 'cus_deleted/pm_1';
    const { customer } = cardEntry();
    const request = cardEntry({ customer: { ...customer, gatewayMethodId } });
    const method = await saveCard(world, await open(world, request), request.session);
    expect(method).toMatch(/^cus_(?!deleted)\w+\/pm_\w+$/);
  });

  it('opens without the e-mail address when Stripe refuses the address', async ({ world }) => {
    const error = {
      type: 'invalid_request_error',
      code: 'email_invalid',
      param: 'customer_email',
      message: 'Invalid email address: ada@shop',
    };
    await world.faults('DELETE', 'faults');
    const fault = { ...OPEN, fault: 'answer', status: 400, body: { error }, count: 1 };
    await world.faults('POST', 'faults', fault);
    const session = await sessionAt(world, await open(world, cardEntry()));
    expect(session).toMatchObject({ customer_email: null, customer_creation: 'always' });
  });

  it.for([
    ['with our checkout', 2 * HOUR_MS, 2 * HOUR_MS],
    ['at the earliest after 30 min', 60_000, HOUR_MS / 2],
    ['at the latest after 24 h', 30 * 24 * HOUR_MS, 24 * HOUR_MS],
  ] as const)('expires %s', async ([, ours, expected], { world }) => {
    const nowAt = Date.now();
    const session = await sessionAt(
      world,
      await open(world, cardEntry({ expiresAt: nowAt + ours })),
    );
    const lifetimeMs = session.expires_at * 1_000 - nowAt;
    expect(Math.abs(lifetimeMs - expected)).toBeLessThan(6 * 60_000);
  });

  it('is not opened when no server listens at the address', async ({ world }) => {
    const port = await freePort();
    const gateway = gatewayOf(world, { url: `http://127.0.0.1:${port}` });
    expect((await gateway.openCardEntry?.(cardEntry()))?.kind).toBe('not_sent');
  });

  it.for([
    ['never answers', { fault: 'hang', effect: 'done' }],
    ['closes the connection', { fault: 'lose_answer' }],
    ['answers 503', { fault: 'answer', status: 503, body: { error: { type: 'api_error' } } }],
  ] as const)(
    'is of unknown outcome when Stripe %s, and a repeat opens it',
    async ([, fault], { world }) => {
      const request = cardEntry();
      await world.faults('DELETE', 'faults');
      await world.faults('POST', 'faults', { ...OPEN, count: 1, ...fault });
      const impatient = gatewayOf(world, { timeoutMs: 1_000 });
      expect((await impatient.openCardEntry?.(request))?.kind).toBe('unknown');
      expect(await open(world, request)).toContain('/checkout/cs_test_');
    },
  );

  it('refuses a token that Stripe refuses as malformed', async ({ world }) => {
    await world.faults('DELETE', 'faults');
    const request = { method: 'GET', path: '/v1/checkout/sessions/*', count: 1 };
    const body = { error: { type: 'invalid_request_error', message: 'Invalid string' } };
    await world.faults('POST', 'faults', { ...request, fault: 'answer', status: 400, body });
    const token = 'cs_test_'.padEnd(100, 'a');
    expect(await gatewayOf(world).saveMethod({ key: 'save:1', token, session: 'cs_1' })).toEqual({
      kind: 'refused',
      code: 'processing_error',
      reason: 'there is no such session',
    });
  });
});
