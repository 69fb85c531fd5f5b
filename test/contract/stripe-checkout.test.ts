import { describe, expect } from 'vitest';
import {
  onStripe as it,
  prepare,
  refusalOf,
  RETURN_URL,
  setupSession,
  submitCard,
  submitForm,
} from '../support/stripe.ts';
import type { StripeWorld } from '../support/stripe.ts';

const returnUrlOf = (sessionId: string) => RETURN_URL.replace('{CHECKOUT_SESSION_ID}', sessionId);

const readSession = ({ stripe }: StripeWorld, id: string) =>
  stripe.checkout.sessions.retrieve(id, {
    expand: ['setup_intent.payment_method', 'payment_intent'],
  });

describe('a Checkout Session of the Stripe double in mode setup', () => {
  it('saves the card of the form for its customer and redirects to success_url', async ({
    world,
  }) => {
    const session = await setupSession(world.stripe);
    expect(session).toMatchObject({
      object: 'checkout.session',
      mode: 'setup',
      status: 'open',
      payment_status: 'no_payment_required',
      livemode: false,
    });
    expect(session.id).toMatch(/^cs_test_/);
    expect(await (await fetch(String(session.url))).text()).toContain('Card number');

    const done = await submitCard(String(session.url), '4242 4242 4242 4242');
    expect(done).toMatchObject({ status: 303, location: returnUrlOf(session.id) });
    expect(await readSession(world, session.id)).toMatchObject({
      status: 'complete',
      url: null,
      setup_intent: {
        status: 'succeeded',
        usage: 'off_session',
        customer: session.customer,
        payment_method: {
          type: 'card',
          customer: session.customer,
          card: { brand: 'visa', last4: '4242', exp_month: 12, exp_year: 2034, country: 'US' },
        },
      },
    });
    const again = await submitCard(String(session.url), '4242424242424242');
    expect(again).toMatchObject({ status: 200, location: null });
    expect(again.html).toContain('This session is complete.');
    expect(await world.receiver.waitFor(session.id, 1)).toEqual(['checkout.session.completed']);
  });

  it.for([
    ['4000000000000002', 'card_declined', 'generic_decline'],
    ['4000000000009995', 'card_declined', 'insufficient_funds'],
    ['4000000000009987', 'card_declined', 'lost_card'],
    ['4000000000009979', 'card_declined', 'stolen_card'],
    ['4000000000000069', 'expired_card', undefined],
    ['4000000000000127', 'incorrect_cvc', undefined],
    ['4000000000000119', 'processing_error', undefined],
  ] as const)(
    'shows its form again when card %s is declined with %s',
    async ([number, code, declineCode], { world }) => {
      const session = await setupSession(world.stripe);
      const declined = await submitCard(String(session.url), number);
      expect(declined).toMatchObject({ status: 200, location: null });
      expect(declined.html).toContain('role="alert"');
      const { status, setup_intent: intent } = await readSession(world, session.id);
      expect(status).toBe('open');
      expect(intent).toMatchObject({
        status: 'requires_payment_method',
        payment_method: null,
        last_setup_error: { type: 'card_error', code },
      });
      expect(
        (intent as { last_setup_error: { decline_code?: string } }).last_setup_error.decline_code,
      ).toBe(declineCode);
      const paid = await submitCard(String(session.url), '5555555555554444');
      expect(paid.location).toBe(returnUrlOf(session.id));
    },
  );

  it.for([
    ['4242424242424241', {}, 'Your card number is incorrect.'],
    ['4000056655665556', {}, 'Your card was declined.'],
    ['4242424242424242', { expiry: '10/26' }, 'Your card has expired.'],
    ['4242424242424242', { cvc: '1' }, 'security code is incorrect'],
  ] as const)(
    'refuses card %s with the changes %j before anything is saved',
    async ([number, changes, text], { world }) => {
      const session = await setupSession(world.stripe);
      const refused = await submitCard(String(session.url), number, changes);
      expect(refused.status).toBe(200);
      expect(refused.html).toContain(text);
      expect((await readSession(world, session.id)).setup_intent).toMatchObject({
        payment_method: null,
      });
    },
  );

  it('leads through 3D Secure, or back to its form if the payer fails 3D Secure', async ({
    world,
  }) => {
    const session = await setupSession(world.stripe);
    const first = await submitCard(String(session.url), '4000 0025 0000 3155');
    expect(first.status).toBe(303);
    expect(first.location).toMatch(/\/challenge\/seti_/);
    const challenge = String(first.location);
    expect(await (await fetch(challenge)).text()).toContain('Complete');
    const failed = await submitForm(challenge, { outcome: 'fail' });
    expect(failed.html).toContain('authentication failed');
    expect((await readSession(world, session.id)).setup_intent).toMatchObject({
      status: 'requires_payment_method',
      last_setup_error: { code: 'setup_intent_authentication_failure' },
    });

    const second = await submitCard(String(session.url), '4000002760003184');
    const passed = await submitForm(String(second.location), { outcome: 'complete' });
    expect(passed).toMatchObject({ status: 303, location: returnUrlOf(session.id) });
    expect((await readSession(world, session.id)).status).toBe('complete');
  });

  it('takes no card after it is expired', async ({ world }) => {
    const { stripe, receiver } = world;
    const session = await setupSession(stripe);
    expect(await stripe.checkout.sessions.expire(session.id)).toMatchObject({
      status: 'expired',
      url: null,
    });
    const late = await submitCard(String(session.url), '4242424242424242');
    expect(late.html).toContain('This session is expired.');
    expect((await readSession(world, session.id)).setup_intent).toMatchObject({
      payment_method: null,
    });
    expect(await refusalOf(stripe.checkout.sessions.expire(session.id))).toMatchObject({
      statusCode: 400,
    });
    expect(await receiver.waitFor(session.id, 1)).toEqual(['checkout.session.expired']);
  });

  it('is refused when it would expire within 30 minutes or after more than 24 hours', async ({
    world,
  }) => {
    const { stripe } = world;
    const open = (expiresInS: number) =>
      stripe.checkout.sessions.create({
        mode: 'setup',
        currency: 'usd',
        success_url: RETURN_URL,
        expires_at: Math.floor(Date.now() / 1_000) + expiresInS,
      });
    expect(await refusalOf(open(60))).toMatchObject({ statusCode: 400, param: 'expires_at' });
    expect(await refusalOf(open(90_000))).toMatchObject({ statusCode: 400, param: 'expires_at' });
    expect((await open(3_600)).status).toBe('open');
  });
});

describe('a Checkout Session of the Stripe double in mode payment', () => {
  const pay = async ({ stripe }: StripeWorld) => {
    const customer = await stripe.customers.create();
    return stripe.checkout.sessions.create({
      mode: 'payment',
      customer: customer.id,
      success_url: RETURN_URL,
      line_items: [
        {
          quantity: 1,
          price_data: { currency: 'usd', unit_amount: 2_500, product_data: { name: 'Owed' } },
        },
      ],
      payment_intent_data: { setup_future_usage: 'off_session', metadata: { attempt: 'at_1' } },
    });
  };

  it('charges on-session after 3D Secure; the card then pays off-session', async ({ world }) => {
    const { stripe, control } = world;
    const session = await pay(world);
    expect(session).toMatchObject({
      payment_intent: null,
      payment_status: 'unpaid',
      amount_total: 2_500,
    });
    const step = await submitCard(String(session.url), '4000002500003155');
    expect(step.location).toMatch(/\/challenge\/pi_/);
    const waiting = await readSession(world, session.id);
    expect(waiting.payment_intent).toMatchObject({
      status: 'requires_action',
      metadata: { attempt: 'at_1' },
    });
    const done = await submitForm(String(step.location), { outcome: 'complete' });
    expect(done.location).toBe(returnUrlOf(session.id));
    const { payment_intent: intent, ...read } = await readSession(world, session.id);
    expect(read).toMatchObject({ status: 'complete', payment_status: 'paid' });
    expect(intent).toMatchObject({ status: 'succeeded', amount_received: 2_500 });

    const { payment_method: method, id } = intent as { payment_method: string; id: string };
    const next = await prepare(stripe, {
      customer: session.customer as string,
      payment_method: method,
    });
    expect((await stripe.paymentIntents.confirm(next.id, { off_session: true })).status).toBe(
      'succeeded',
    );
    const { charges } = (await control('GET', `charges?paymentIntentId=${id}`)) as {
      charges: unknown[];
    };
    expect(charges).toHaveLength(1);
  });

  it('shows a decline in its form; its PaymentIntent is canceled when the session expires', async ({
    world,
  }) => {
    const { stripe } = world;
    const session = await pay(world);
    const declined = await submitCard(String(session.url), '4000000000000002');
    expect(declined.html).toContain('Your card was declined.');
    const { payment_intent: intent } = await readSession(world, session.id);
    const { id } = intent as { id: string };
    expect(await refusalOf(stripe.paymentIntents.cancel(id))).toMatchObject({ statusCode: 400 });
    await stripe.checkout.sessions.expire(session.id);
    expect((await stripe.paymentIntents.retrieve(id)).status).toBe('canceled');
  });
});
