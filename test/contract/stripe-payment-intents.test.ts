import { describe, expect } from 'vitest';
import {
  onStripe as it,
  prepare,
  refusalOf,
  RETURN_URL,
  savedCard,
  submitForm,
} from '../support/stripe.ts';
import type { StripeWorld } from '../support/stripe.ts';

/** The charges of a PaymentIntent in the double's own records. */
const booked = async ({ control }: StripeWorld, intentId: string) => {
  const { charges } = (await control('GET', `charges?paymentIntentId=${intentId}`)) as {
    charges: { status: string; code: string | null; confirmCount: number; amountMinor: number }[];
  };
  return charges.map(({ status, code, confirmCount, amountMinor }) => ({
    status,
    code,
    confirmCount,
    amountMinor,
  }));
};

const offSession = { off_session: true } as const;

describe('a PaymentIntent of the Stripe double', () => {
  it('makes no charge before its confirmation and one charge after it', async ({ world }) => {
    const { stripe } = world;
    const metadata = { subscription_id: 'sub_1' };
    const intent = await prepare(stripe, await savedCard(stripe), { metadata });
    expect(intent).toMatchObject({
      status: 'requires_confirmation',
      amount: 1_999,
      currency: 'usd',
      livemode: false,
      latest_charge: null,
      metadata,
    });
    expect(intent.id).toMatch(/^pi_[0-9A-Za-z]{24}$/);
    expect((await stripe.charges.list({ payment_intent: intent.id })).data).toEqual([]);

    const paid = await stripe.paymentIntents.confirm(intent.id, {
      ...offSession,
      expand: ['latest_charge'],
    });
    expect(paid).toMatchObject({
      status: 'succeeded',
      amount_received: 1_999,
      latest_charge: { object: 'charge', paid: true, amount: 1_999, metadata, refunded: false },
    });
    expect(await stripe.paymentIntents.retrieve(intent.id)).toMatchObject({ status: 'succeeded' });
    expect(await booked(world, intent.id)).toEqual([
      { status: 'succeeded', code: null, confirmCount: 1, amountMinor: 1_999 },
    ]);
  });

  it('charges once when it is confirmed under several keys, even at the same time', async ({
    world,
  }) => {
    const { stripe } = world;
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
    expect(await booked(world, intent.id)).toEqual([
      { status: 'succeeded', code: null, confirmCount: 4, amountMinor: 1_999 },
    ]);
  });

  it('never charges after it is cancelled, and cannot be cancelled after it has charged', async ({
    world,
  }) => {
    const { stripe } = world;
    const saved = await savedCard(stripe);
    const intent = await prepare(stripe, saved);
    const canceled = await stripe.paymentIntents.cancel(intent.id, {
      cancellation_reason: 'abandoned',
    });
    expect(canceled).toMatchObject({ status: 'canceled', cancellation_reason: 'abandoned' });
    expect(await refusalOf(stripe.paymentIntents.confirm(intent.id, offSession))).toMatchObject({
      statusCode: 400,
      code: 'payment_intent_unexpected_state',
      message: 'You cannot confirm this PaymentIntent because it has a status of canceled.',
    });
    expect(await booked(world, intent.id)).toEqual([]);

    const paid = await prepare(stripe, saved);
    await stripe.paymentIntents.confirm(paid.id, offSession);
    const late = await refusalOf(stripe.paymentIntents.cancel(paid.id));
    expect(late).toMatchObject({ statusCode: 400, code: 'payment_intent_unexpected_state' });
    expect(late.message).toMatch(
      /^You cannot cancel this PaymentIntent because it has a status of succeeded\./,
    );
  });

  it('cannot be confirmed again after a decline without another payment method', async ({
    world,
  }) => {
    const { stripe } = world;
    const declining = await savedCard(stripe, '4000000000000341');
    const intent = await prepare(stripe, declining);
    const refusal = await refusalOf(stripe.paymentIntents.confirm(intent.id, offSession));
    expect(refusal).toMatchObject({
      statusCode: 402,
      rawType: 'card_error',
      code: 'card_declined',
      decline_code: 'generic_decline',
      advice_code: 'try_again_later',
      message: 'Your card was declined.',
    });
    const failed = await stripe.paymentIntents.retrieve(intent.id);
    expect(failed).toMatchObject({
      status: 'requires_payment_method',
      payment_method: null,
      last_payment_error: {
        type: 'card_error',
        code: 'card_declined',
        decline_code: 'generic_decline',
        charge: failed.latest_charge,
        payment_method: { id: declining.payment_method },
      },
    });
    expect(refusal.error).toMatchObject({ payment_intent: { id: intent.id } });
    expect(await refusalOf(stripe.paymentIntents.confirm(intent.id, offSession))).toMatchObject({
      statusCode: 400,
      code: 'payment_intent_unexpected_state',
    });
    expect(await booked(world, intent.id)).toEqual([
      { status: 'failed', code: 'card_declined', confirmCount: 2, amountMinor: 1_999 },
    ]);
  });

  it('is declined as often as a control route orders for its payment method or its metadata', async ({
    world,
  }) => {
    const { stripe, control } = world;
    const saved = await savedCard(stripe);
    const metadata = { subscription_id: 'sub_forced' };
    await control('POST', 'outcomes', {
      kind: 'decline',
      metadata,
      code: 'card_declined',
      declineCode: 'insufficient_funds',
      adviceCode: 'try_again_later',
      count: 2,
    });
    const intent = await prepare(stripe, saved, { metadata });
    const confirm = () =>
      stripe.paymentIntents.confirm(intent.id, {
        ...offSession,
        payment_method: saved.payment_method,
      });
    const declined = { code: 'card_declined', decline_code: 'insufficient_funds' };
    expect(await refusalOf(confirm())).toMatchObject(declined);
    expect(await refusalOf(confirm())).toMatchObject(declined);
    expect(await confirm()).toMatchObject({ status: 'succeeded' });
    await control('POST', 'outcomes', {
      kind: 'decline',
      paymentMethodId: saved.payment_method,
      code: 'expired_card',
      count: 1,
    });
    const other = await prepare(stripe, saved);
    const expired = await refusalOf(stripe.paymentIntents.confirm(other.id, offSession));
    // Stripe sends no decline code here. stripe-node turns the absent code into an empty text.
    expect(expired).toMatchObject({ code: 'expired_card', decline_code: '' });
  });

  it('is processing until its outcome is known', async ({ world }) => {
    const { stripe, control } = world;
    const saved = await savedCard(stripe);
    const start = async () => {
      await control('POST', 'outcomes', {
        kind: 'processing',
        paymentMethodId: saved.payment_method,
        count: 1,
      });
      const intent = await prepare(stripe, saved);
      const { status } = await stripe.paymentIntents.confirm(intent.id, offSession);
      return { id: intent.id, status };
    };
    const [paid, declined] = [await start(), await start()];
    expect([paid.status, declined.status]).toEqual(['processing', 'processing']);
    expect(await refusalOf(stripe.paymentIntents.cancel(paid.id))).toMatchObject({
      statusCode: 400,
    });
    await control('POST', 'settle', { paymentIntentId: paid.id });
    await control('POST', 'settle', {
      paymentIntentId: declined.id,
      code: 'card_declined',
      declineCode: 'do_not_honor',
    });
    expect((await stripe.paymentIntents.retrieve(paid.id)).status).toBe('succeeded');
    expect(await stripe.paymentIntents.retrieve(declined.id)).toMatchObject({
      status: 'requires_payment_method',
      last_payment_error: { decline_code: 'do_not_honor' },
    });
    expect(await booked(world, paid.id)).toHaveLength(1);
    expect(await booked(world, declined.id)).toHaveLength(1);
  });

  it('is declined off-session if its card needs authentication for every payment', async ({
    world,
  }) => {
    const { stripe } = world;
    const always = await prepare(stripe, await savedCard(stripe, '4000002760003184'));
    expect(await refusalOf(stripe.paymentIntents.confirm(always.id, offSession))).toMatchObject({
      statusCode: 402,
      code: 'authentication_required',
      decline_code: 'authentication_required',
    });
    const once = await prepare(stripe, await savedCard(stripe, '4000002500003155'));
    expect(await stripe.paymentIntents.confirm(once.id, offSession)).toMatchObject({
      status: 'succeeded',
    });
  });

  it('needs 3D Secure as often as a control route orders, with any card', async ({ world }) => {
    const { stripe, control } = world;
    const saved = await savedCard(stripe);
    const metadata = { subscription_id: 'sub_asked' };
    await control('POST', 'outcomes', { kind: 'authentication', metadata, count: 2 });
    const [alone, withPayer, later] = await Promise.all(
      [1, 2, 3].map(() => prepare(stripe, saved, { metadata })),
    );
    expect(await refusalOf(stripe.paymentIntents.confirm(alone!.id, offSession))).toMatchObject({
      statusCode: 402,
      code: 'authentication_required',
    });
    const asked = await stripe.paymentIntents.confirm(withPayer!.id, { return_url: RETURN_URL });
    expect(asked.status).toBe('requires_action');
    const bankUrl = String(asked.next_action?.redirect_to_url?.url);
    const { location } = await submitForm(bankUrl, { outcome: 'complete' });
    expect(location).toContain('redirect_status=succeeded');
    expect(await stripe.paymentIntents.confirm(later!.id, offSession)).toMatchObject({
      status: 'succeeded',
    });
    expect(await booked(world, alone!.id)).toMatchObject([{ status: 'failed' }]);
    expect(await booked(world, withPayer!.id)).toMatchObject([{ status: 'succeeded' }]);
  });

  it('cannot use a detached payment method', async ({ world }) => {
    const { stripe } = world;
    const saved = await savedCard(stripe);
    const intent = await prepare(stripe, saved);
    expect(await stripe.paymentMethods.detach(saved.payment_method)).toMatchObject({
      customer: null,
    });
    const refusal = await refusalOf(stripe.paymentIntents.confirm(intent.id, offSession));
    expect(refusal).toMatchObject({ statusCode: 400, rawType: 'invalid_request_error' });
    expect(refusal.message).toContain('was detached from a Customer. It may not be used again.');
    expect(await booked(world, intent.id)).toEqual([]);
  });

  it.for([
    ['usd', 49, 'amount_too_small', 'Amount must be at least $0.50 usd'],
    ['usd', 100_000_000, 'amount_too_large', 'Amount must be no more than $999999.99 usd'],
    ['jpy', 49, 'amount_too_small', 'Amount must be at least 50 jpy'],
    ['kwd', 1_001, undefined, 'Amount must be divisible by 10 in kwd.'],
    ['isk', 150, undefined, 'Amount must be divisible by 100 in isk.'],
  ] as const)(
    'is refused at its creation when Stripe cannot charge the amount: in %s, %i',
    async ([currency, amount, code, message], { world }) => {
      const refusal = await refusalOf(world.stripe.paymentIntents.create({ currency, amount }));
      expect(refusal).toMatchObject({ statusCode: 400, code, param: 'amount', message });
    },
  );

  it('is listed by creation, newest first, over pages', async ({ world }) => {
    const { stripe } = await world.account();
    const ids: string[] = [];
    for (let made = 0; made < 3; made += 1) {
      ids.push((await stripe.paymentIntents.create({ amount: 500, currency: 'eur' })).id);
    }
    const first = await stripe.paymentIntents.list({ limit: 2, created: { gte: 1 } });
    expect(first.data.map(({ id }) => id)).toEqual([ids[2], ids[1]]);
    expect(first.has_more).toBe(true);
    const rest = await stripe.paymentIntents.list({ limit: 2, starting_after: String(ids[1]) });
    expect(rest.data.map(({ id }) => id)).toEqual([ids[0]]);
    expect(rest.has_more).toBe(false);
    expect((await stripe.paymentIntents.list({ created: { lt: 1 } })).data).toEqual([]);
  });
});
