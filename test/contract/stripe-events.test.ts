import { Stripe } from 'stripe';
import { describe, expect } from 'vitest';
import {
  gatewayOf,
  onStripe as it,
  prepare,
  savedCard,
  setupSession,
  submitCard,
  WEBHOOK_SECRET,
} from '../support/stripe.ts';
import { readEvents } from '../../gateways/stripe/events.ts';
import type { ReceivedEvent, StripeWorld } from '../support/stripe.ts';

/** Stripe's adapter reads inbound events, and looks up the objects that the events name. */

type Gateway = ReturnType<typeof gatewayOf>;

const read = (gateway: Gateway, { rawBody, signature }: ReceivedEvent) =>
  gateway.readEvents?.(Buffer.from(rawBody), { 'stripe-signature': signature });

/** Makes a payment of 19.99 USD. */
async function payment({ stripe }: StripeWorld) {
  const intent = await prepare(stripe, await savedCard(stripe), { metadata: { key: 'charge:1' } });
  const paid = await stripe.paymentIntents.confirm(intent.id, { off_session: true });
  return { gatewayChargeId: paid.id, chargeId: paid.latest_charge as string };
}

/** Waits for `count` events about an object and returns the last one. */
async function lastEvent({ receiver }: StripeWorld, id: string, count: number) {
  await receiver.waitFor(id, count);
  const event = receiver.of(id).at(-1);
  if (!event) throw new Error(`no event of ${id}`);
  return event;
}

describe('an event of Stripe', () => {
  it('about a payment names the charge', async ({ world }) => {
    const { gatewayChargeId } = await payment(world);
    const event = await lastEvent(world, gatewayChargeId, 2);
    expect(read(gatewayOf(world), event)).toEqual([
      { eventId: event.id, type: event.type, kind: 'charge', gatewayChargeId },
    ]);
  });

  it('about a refund names the refund and our key', async ({ world }) => {
    const { chargeId, gatewayChargeId } = await payment(world);
    await world.control('POST', 'refunds/pending', { chargeId });
    const { id } = await world.stripe.refunds.create({
      payment_intent: gatewayChargeId,
      metadata: { key: 'refund:1' },
    });
    await world.control('POST', 'refunds/settle', { refundId: id });
    const event = await lastEvent(world, id, 1);
    const hint = { kind: 'refund', gatewayRefundId: id, key: 'refund:1' };
    expect(read(gatewayOf(world), event)).toEqual([
      { eventId: event.id, type: 'refund.updated', ...hint },
    ]);
  });

  it('about a card entered on Stripe’s page names our session', async ({ world }) => {
    const { stripe } = world;
    const customer = await stripe.customers.create({});
    const { id, url } = await stripe.checkout.sessions.create({
      mode: 'setup',
      customer: customer.id,
      payment_method_types: ['card'],
      client_reference_id: 'cs_ours',
      success_url: 'http://127.0.0.1:8080/return',
    });
    await submitCard(String(url), '4242424242424242');
    const event = await lastEvent(world, id, 1);
    const hint = { kind: 'card_entry', token: id, session: 'cs_ours' };
    expect(read(gatewayOf(world), event)).toEqual([
      { eventId: event.id, type: 'checkout.session.completed', ...hint },
    ]);
  });

  it('about a session that expired, or that is not ours, is ignored', async ({ world }) => {
    const { stripe } = world;
    const session = await setupSession(stripe);
    await stripe.checkout.sessions.expire(session.id);
    const expired = await lastEvent(world, session.id, 1);
    expect(read(gatewayOf(world), expired)).toMatchObject([
      { type: 'checkout.session.expired', kind: 'ignored' },
    ]);
    const foreign = await setupSession(stripe);
    await submitCard(String(foreign.url), '4242424242424242');
    expect(read(gatewayOf(world), await lastEvent(world, foreign.id, 1))).toMatchObject([
      { type: 'checkout.session.completed', kind: 'ignored' },
    ]);
  });

  it('is accepted when one of two secrets matches, as during a rotation', async ({ world }) => {
    const { gatewayChargeId } = await payment(world);
    const event = await lastEvent(world, gatewayChargeId, 2);
    const rotating = gatewayOf(world, { webhookSecrets: ['whsec_new', WEBHOOK_SECRET] });
    expect(read(rotating, event)).toMatchObject([{ kind: 'charge', gatewayChargeId }]);
    expect(read(gatewayOf(world, { webhookSecrets: ['whsec_new'] }), event)).toBe('bad_signature');
    expect(read(gatewayOf(world, { webhookSecrets: [] }), event)).toBe('bad_signature');
  });

  it('is refused when it was changed, is old, or has no signature', async ({ world }) => {
    const gateway = gatewayOf(world);
    const { gatewayChargeId } = await payment(world);
    const event = await lastEvent(world, gatewayChargeId, 2);
    const rawBody = event.rawBody.replace(gatewayChargeId, 'pi_of_another');
    expect(read(gateway, { ...event, rawBody })).toBe('bad_signature');
    const signedAgo = (seconds: number) => ({
      ...event,
      signature: Stripe.webhooks.generateTestHeaderString({
        payload: event.rawBody,
        secret: WEBHOOK_SECRET,
        timestamp: Math.floor(Date.now() / 1_000) - seconds,
      }),
    });
    expect(read(gateway, signedAgo(600))).toBe('bad_signature');
    expect(read(gateway, signedAgo(60))).toMatchObject([{ gatewayChargeId }]);
    expect(gateway.readEvents?.(Buffer.from(event.rawBody), {})).toBe('bad_signature');
  });
});

describe('a look-up at Stripe', () => {
  it('finds the current state of a dispute, and reports an unknown id as absent', async ({
    world,
  }) => {
    const gateway = gatewayOf(world);
    const { chargeId, gatewayChargeId } = await payment(world);
    const { disputeId } = await world.control('POST', 'disputes', { chargeId });
    const id = String(disputeId);
    const event = await lastEvent(world, id, 1);
    expect(read(gateway, event)).toMatchObject([
      { kind: 'dispute', gatewayDisputeId: id, gatewayChargeId },
    ]);
    const found = {
      gatewayChargeId,
      amountMinor: 1_999,
      currency: 'USD',
      reason: 'fraudulent',
      status: 'OPEN',
      openedAt: expect.any(Number),
    };
    expect(await gateway.lookupDispute?.(id)).toEqual({ kind: 'found', dispute: found });
    await world.control('POST', 'disputes/close', { disputeId, status: 'lost' });
    expect(await gateway.lookupDispute?.(id)).toEqual({
      kind: 'found',
      dispute: { ...found, status: 'LOST' },
    });
    expect(await gateway.lookupDispute?.('du_none')).toEqual({ kind: 'absent' });
  });

  it('finds a warning of fraud, and reports an unknown id as absent', async ({ world }) => {
    const gateway = gatewayOf(world);
    const { chargeId, gatewayChargeId } = await payment(world);
    const { warningId } = await world.control('POST', 'fraud-warnings', { chargeId });
    const id = String(warningId);
    expect(read(gateway, await lastEvent(world, id, 1))).toMatchObject([
      { kind: 'fraud_warning', gatewayWarningId: id, gatewayChargeId },
    ]);
    const fraudType = 'made_with_stolen_card';
    expect(await gateway.lookupFraudWarning?.(id)).toEqual({
      kind: 'found',
      gatewayChargeId,
      fraudType,
    });
    expect(await gateway.lookupFraudWarning?.('issfr_none')).toEqual({ kind: 'absent' });
  });

  it('re-reads the payment method of a mandate that changed', () => {
    const object = { object: 'mandate', id: 'mandate_1', payment_method: 'pm_1' };
    const payload = JSON.stringify({ id: 'evt_1', type: 'mandate.updated', data: { object } });
    const header = Stripe.webhooks.generateTestHeaderString({ payload, secret: WEBHOOK_SECRET });
    expect(readEvents([WEBHOOK_SECRET], Buffer.from(payload), header)).toEqual([
      { eventId: 'evt_1', type: 'mandate.updated', kind: 'method', gatewayMethodId: 'pm_1' },
    ]);
  });

  it('finds a card with the details of a network update, and reports a detached card as removed', async ({
    world,
  }) => {
    const gateway = gatewayOf(world);
    const { customer, payment_method: id } = await savedCard(world.stripe);
    const gatewayMethodId = `${customer}/${id}`;
    const change = { lastFour: '1881', expiryMonth: 7, expiryYear: 2037 };
    await world.control('POST', 'cards', { paymentMethodId: id, ...change });
    expect(read(gateway, await lastEvent(world, id, 1))).toMatchObject([
      { kind: 'method', gatewayMethodId },
    ]);
    expect(await gateway.lookupMethod(gatewayMethodId)).toEqual({
      kind: 'found',
      card: {
        gatewayMethodId,
        brand: 'visa',
        country: 'US',
        lastFourDigit: '1881',
        expiryMonth: 7,
        expiryYear: 2037,
      },
    });
    await world.stripe.paymentMethods.detach(id);
    // A detached payment method names no customer.
    expect(read(gateway, await lastEvent(world, id, 2))).toMatchObject([
      { kind: 'method', gatewayMethodId: id },
    ]);
    expect(await gateway.lookupMethod(gatewayMethodId)).toEqual({ kind: 'removed' });
  });

  it('has an unknown outcome when its answer is lost', async ({ world }) => {
    const lose = (path: string) =>
      world.faults('POST', 'faults', { method: 'GET', path, count: 1, fault: 'lose_answer' });
    await lose('/v1/disputes/*');
    expect(await gatewayOf(world).lookupDispute?.('du_1')).toMatchObject({ kind: 'unknown' });
    await lose('/v1/payment_methods/*');
    expect(await gatewayOf(world).lookupMethod('cus_1/pm_1')).toMatchObject({ kind: 'unknown' });
  });
});
