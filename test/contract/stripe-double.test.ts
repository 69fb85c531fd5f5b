import { describe, expect, vi } from 'vitest';
import { STORED_500_HEADER } from '../../tools/stripe-double/api.ts';
import { onStripe as it, prepare, refusalOf, savedCard } from '../support/stripe.ts';

const WAIT = { timeout: 60_000, interval: 50 };

const offSession = { off_session: true } as const;

/** The promises of the Stripe double on which the tests about money rest. */

it('a PaymentIntent is charged once when it is confirmed under several keys, even at the same time', async ({
  world,
}) => {
  const { stripe, control } = world;
  const intent = await prepare(stripe, await savedCard(stripe));
  const results = await Promise.allSettled(
    ['k1', 'k2', 'k3'].map((key) =>
      stripe.paymentIntents.confirm(intent.id, offSession, { idempotencyKey: intent.id + key }),
    ),
  );
  expect(results.map(({ status }) => status).toSorted()).toEqual([
    'fulfilled',
    'rejected',
    'rejected',
  ]);
  const again = stripe.paymentIntents.confirm(intent.id, offSession);
  expect(await refusalOf(again)).toMatchObject({
    statusCode: 400,
    rawType: 'invalid_request_error',
    code: 'payment_intent_unexpected_state',
    message:
      'You cannot confirm this PaymentIntent because it has already succeeded after being previously confirmed.',
    error: { payment_intent: { id: intent.id, status: 'succeeded' } },
  });
  expect(await control('GET', `charges?paymentIntentId=${intent.id}`)).toMatchObject({
    charges: [{ status: 'succeeded', confirmCount: 4, amountMinor: 1_999 }],
  });
});

describe('an Idempotency-Key of the Stripe double', () => {
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
});
