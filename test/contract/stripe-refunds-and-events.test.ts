import { Stripe } from 'stripe';
import { describe, expect } from 'vitest';
import {
  onStripe as it,
  prepare,
  refusalOf,
  savedCard,
  WEBHOOK_SECRET,
} from '../support/stripe.ts';
import type { ReceivedEvent, StripeWorld } from '../support/stripe.ts';

const offSession = { off_session: true } as const;

/** Makes a payment of 19.99 USD. */
const payment = async ({ stripe }: Pick<StripeWorld, 'stripe'>) => {
  const intent = await prepare(stripe, await savedCard(stripe));
  const paid = await stripe.paymentIntents.confirm(intent.id, offSession);
  return { intentId: paid.id, chargeId: paid.latest_charge as string };
};

describe('a refund of the Stripe double', () => {
  it('never exceeds the charge together with other refunds, even concurrent ones', async ({
    world,
  }) => {
    const { stripe } = world;
    const { intentId, chargeId } = await payment(world);
    const refund = (amount: number) =>
      stripe.refunds.create({ payment_intent: intentId, amount, metadata: { refund: 'rf_1' } });
    expect(await refund(500)).toMatchObject({
      object: 'refund',
      amount: 500,
      currency: 'usd',
      charge: chargeId,
      status: 'succeeded',
      metadata: { refund: 'rf_1' },
    });
    expect(await refusalOf(refund(1_500))).toMatchObject({
      statusCode: 400,
      rawType: 'invalid_request_error',
      param: 'amount',
      message:
        'Refund amount ($15.00 usd) is greater than unrefunded amount on charge ($14.99 usd)',
    });
    const parts = await Promise.allSettled([refund(1_000), refund(1_000)]);
    expect(parts.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    await stripe.refunds.create({ charge: chargeId });
    expect(await refusalOf(stripe.refunds.create({ charge: chargeId }))).toMatchObject({
      statusCode: 400,
      code: 'charge_already_refunded',
      message: `Charge ${chargeId} has already been refunded.`,
    });
    const { data } = await stripe.refunds.list({ payment_intent: intentId });
    expect(data.map(({ amount }) => amount)).toEqual([499, 1_000, 500]);
    expect(await stripe.charges.retrieve(chargeId)).toMatchObject({
      amount_refunded: 1_999,
      refunded: true,
    });
  });

  it('is refused for a payment that did not succeed', async ({ world }) => {
    const { stripe } = world;
    const intent = await prepare(stripe, await savedCard(stripe, '4000000000000341'));
    const message = `This PaymentIntent (${intent.id}) does not have a successful charge to refund.`;
    const refund = () => stripe.refunds.create({ payment_intent: intent.id });
    expect(await refusalOf(refund())).toMatchObject({ statusCode: 400, message });
    await refusalOf(stripe.paymentIntents.confirm(intent.id, offSession));
    expect(await refusalOf(refund())).toMatchObject({ statusCode: 400, message });
    const unknown = stripe.refunds.create({ payment_intent: 'pi_none' });
    expect(await refusalOf(unknown)).toMatchObject({ statusCode: 400, code: 'resource_missing' });
  });

  it('may fail after it was pending, so that its amount can be refunded again', async ({
    world,
  }) => {
    const { stripe, control, receiver } = world;
    const { chargeId } = await payment(world);
    await control('POST', 'refunds/pending', { chargeId });
    const first = await stripe.refunds.create({ charge: chargeId });
    expect(first).toMatchObject({ status: 'pending', pending_reason: 'processing' });
    await control('POST', 'refunds/settle', {
      refundId: first.id,
      failure: 'lost_or_stolen_card',
    });
    const failed = { status: 'failed', failure_reason: 'lost_or_stolen_card' };
    expect(await stripe.refunds.retrieve(first.id)).toMatchObject(failed);
    const second = await stripe.refunds.create({ charge: chargeId });
    // Without a refund's id, the last refund of the charge is settled.
    await control('POST', 'refunds/settle', { chargeId });
    expect((await stripe.refunds.retrieve(second.id)).status).toBe('succeeded');
    // Two events of one request may arrive in any order.
    expect((await receiver.waitFor(first.id, 2)).toSorted()).toEqual([
      'refund.failed',
      'refund.updated',
    ]);
    expect(await receiver.waitFor(second.id, 1)).toEqual(['refund.updated']);
  });
});

describe('a dispute of the Stripe double', () => {
  it('is opened on a charge, prevents refunds of the charge, and is closed', async ({ world }) => {
    const { stripe, control, receiver } = world;
    const { chargeId, intentId } = await payment(world);
    const { disputeId } = await control('POST', 'disputes', { chargeId });
    expect(await stripe.disputes.retrieve(String(disputeId))).toMatchObject({
      charge: chargeId,
      payment_intent: intentId,
      amount: 1_999,
      reason: 'fraudulent',
      status: 'needs_response',
    });
    expect((await stripe.charges.retrieve(chargeId)).disputed).toBe(true);
    expect(await refusalOf(stripe.refunds.create({ charge: chargeId }))).toMatchObject({
      statusCode: 400,
      code: 'charge_disputed',
    });
    expect(await receiver.waitFor(String(disputeId), 1)).toEqual(['charge.dispute.created']);
    await control('POST', 'disputes/close', { disputeId, status: 'lost' });
    expect(await stripe.disputes.list({ charge: chargeId })).toMatchObject({
      data: [{ id: disputeId, status: 'lost' }],
    });
    expect(await receiver.waitFor(String(disputeId), 2)).toEqual([
      'charge.dispute.created',
      'charge.dispute.closed',
    ]);
  });
});

describe('an event of the Stripe double', () => {
  const verified = ({ rawBody, signature }: ReceivedEvent) =>
    Stripe.webhooks.constructEvent(rawBody, signature, WEBHOOK_SECRET);

  it('is signed, has the pinned API version, and is in the list of events', async ({ world }) => {
    const { stripe, receiver } = world;
    const { intentId } = await payment(world);
    expect((await receiver.waitFor(intentId, 2)).toSorted()).toEqual([
      'payment_intent.created',
      'payment_intent.succeeded',
    ]);
    const received = receiver.of(intentId).find(({ type }) => type.endsWith('succeeded'))!;
    expect(verified(received)).toMatchObject({
      object: 'event',
      type: 'payment_intent.succeeded',
      api_version: '2026-08-26.dahlia',
      livemode: false,
      data: { object: { id: intentId, status: 'succeeded' } },
    });
    const tampered = received.rawBody.replace('1999', '1');
    expect(() =>
      Stripe.webhooks.constructEvent(tampered, received.signature, WEBHOOK_SECRET),
    ).toThrow(Stripe.errors.StripeSignatureVerificationError);
    expect(await stripe.events.retrieve(received.id)).toMatchObject({ id: received.id });
    const { data } = await stripe.events.list({ type: 'payment_intent.succeeded', limit: 1 });
    expect(data.map(({ id }) => id)).toEqual([received.id]);
  });

  it('is repeated with the same body until its receiver answers 2xx', async ({ world }) => {
    const { stripe, receiver } = world;
    // An event of an earlier test may still be on its way.
    receiver.refuseNext('refused:1');
    const metadata = { key: 'refused:1' };
    const { id } = await stripe.paymentIntents.create({ amount: 500, currency: 'usd', metadata });
    await receiver.waitFor(id, 2);
    const [first, second] = receiver.of(id);
    expect(second?.rawBody).toBe(first?.rawBody);
    expect(receiver.of(id)).toHaveLength(2);
  });

  it('is held, dropped or duplicated when a control route orders it', async ({ world }) => {
    const { stripe, control, receiver } = world;
    const type = 'payment_intent.created';
    for (const action of ['hold', 'drop', 'duplicate']) {
      await control('POST', 'events', { action, type, count: 1 });
    }
    const create = async () =>
      (await stripe.paymentIntents.create({ amount: 500, currency: 'usd' })).id;
    const [held, dropped, doubled, last] = [
      await create(),
      await create(),
      await create(),
      await create(),
    ];
    await receiver.waitFor(last, 1);
    await receiver.waitFor(doubled, 2);
    expect(receiver.of(doubled).map(({ id }) => id)).toEqual([
      receiver.of(doubled)[0]?.id,
      receiver.of(doubled)[0]?.id,
    ]);
    expect([...receiver.of(held), ...receiver.of(dropped)]).toEqual([]);
    await control('POST', 'events/release', {});
    expect(await receiver.waitFor(held, 1)).toEqual([type]);
    expect(receiver.of(dropped)).toEqual([]);
    const { data } = await stripe.events.list({ type });
    expect(data.map((event) => (event.data.object as { id: string }).id)).toContain(dropped);
  });

  it('arrives before the answer of its request when a control route orders it', async ({
    world,
  }) => {
    const { stripe, control, receiver } = world;
    const intent = await prepare(stripe, await savedCard(stripe));
    const type = 'payment_intent.succeeded';
    await control('POST', 'events', { action: 'before_answer', type, count: 1 });
    await stripe.paymentIntents.confirm(intent.id, offSession);
    expect(receiver.of(intent.id).map((event) => event.type)).toContain(type);
  });

  it('reports a detached and an updated payment method', async ({ world }) => {
    const { stripe, control, receiver } = world;
    const { payment_method: id } = await savedCard(stripe);
    const renewed = { lastFour: '1881', expiryMonth: 1, expiryYear: 2039 };
    await control('POST', 'cards', { paymentMethodId: id, ...renewed });
    expect(await stripe.paymentMethods.retrieve(id)).toMatchObject({
      card: { last4: '1881', exp_month: 1, exp_year: 2039 },
    });
    expect(await receiver.waitFor(id, 1)).toEqual(['payment_method.automatically_updated']);
    await stripe.paymentMethods.detach(id);
    expect(await receiver.waitFor(id, 2)).toEqual([
      'payment_method.automatically_updated',
      'payment_method.detached',
    ]);
  });
});
