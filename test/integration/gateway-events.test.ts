import { randomUUID } from 'node:crypto';
import { and, eq, inArray } from 'drizzle-orm';
import { Stripe } from 'stripe';
import { describe, expect, vi } from 'vitest';
import { checkoutSessions } from '../../db/schema/checkouts.ts';
import { disputes, refunds } from '../../db/schema/payments.ts';
import { gatewayEvents } from '../../db/schema/gateway-events.ts';
import { NOTHING_FOUND } from '../../activities/repair/sweep.ts';
import { openPage, submitForm } from '../../tools/scripts/client/browser.ts';
import { submitCard, WEBHOOK_SECRET } from '../support/stripe.ts';
import {
  active,
  created,
  eventsOf,
  expectNothingLeft,
  lastAttempt,
  onStripeScene,
  SOON,
} from '../support/stripe-scene.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';

/**
 * Sends events of Stripe from the Stripe double, and checks the rows, the timeline and the merchant's events.
 */

const test = onStripeScene;

const PAID = [
  'intent.created',
  'subscription.created',
  'intent.success',
  'subscription.cycle_charged',
  'subscription.active',
];
const RENEWED = ['intent.created', 'intent.success', 'subscription.cycle_charged'];

describe('a card that a payer enters at Stripe without returning', () => {
  test('starts the subscription with one charge, and a later return charges nothing [D-32, D-§4]', async ({
    scene,
  }) => {
    const { env, seller } = scene;
    const made = await created(scene);
    const before = (await seller.charges()).length;
    const { token: commandId, sessionId } = await seller.enterCard(made);
    await expect.poll(async () => (await env.state(made)).status).toBe('ACTIVE');
    const command = { kind: 'completeCheckout', commandId, paymentToken: commandId } as const;
    expect(await env.execute(made, { ...command, checkoutSessionId: sessionId })).toMatchObject({
      kind: 'result',
      result: { kind: 'checkout', errorCode: null },
    });
    expect((await seller.charges()).slice(before)).toEqual(['succeeded 1999']);
    expect((await eventsOf(scene, made.subscriptionId)).toSorted()).toEqual(PAID.toSorted());
    await expectNothingLeft(scene);
  });

  test('is taken when Stripe answers again, after the command has given up [D-32]', async ({
    scene,
  }) => {
    const { env, seller, world } = scene;
    const made = await created(scene);
    const read = { method: 'GET', path: '/v1/checkout/sessions/*' };
    // The handler stops waiting after 25 s. The command has one local try and five on the queue.
    await world.faults('POST', 'faults', { ...read, fault: 'hang', count: 4 });
    await world.faults('POST', 'faults', { ...read, fault: 'answer', status: 500, count: 1_000 });
    await seller.enterCard(made);
    await expect
      .poll(async () => (await world.faults('GET', 'faults'))['faults'], SOON)
      .toMatchObject([{ hits: 4 }, { hits: 2 }]);
    await world.faults('DELETE', 'faults');
    await expect.poll(async () => (await env.state(made)).status, SOON).toBe('ACTIVE');
    expect((await eventsOf(scene, made.subscriptionId)).toSorted()).toEqual(PAID.toSorted());
    await expectNothingLeft(scene);
  });

  test('is saved when the page belongs to a setup session [D-§7]', async ({ scene }) => {
    const { shop, seller } = scene;
    const { setupMethodId } = await shop.merchant.post<{ setupMethodId: string }>(
      '/setup-method/create',
      {
        currency: 'USD',
        billingDetails: MONTHLY.customerDetails,
        callbackUrl: MONTHLY.callbackUrl,
      },
    );
    await seller.enterCard({ setupMethodId });
    await expect.poll(() => eventsOf(scene, setupMethodId)).toEqual(['setup_method.success']);
    await expectNothingLeft(scene);
  });

  test('leaves the checkout open, with the decline code, when the card is declined [D-§4]', async ({
    scene,
  }) => {
    const { env, seller } = scene;
    const made = await created(scene);
    const { sessionId } = await seller.enterCard(made, '4000000000000341');
    const session = async () => {
      const [row] = await env.db
        .select()
        .from(checkoutSessions)
        .where(eq(checkoutSessions.id, sessionId));
      return row;
    };
    await expect.poll(session).toMatchObject({ tries: 1, lastErrorCode: 'card_declined' });
    expect((await env.state(made)).status).toBe('CREATED');
    await expectNothingLeft(scene);
    expect(await session()).toMatchObject({ tries: 1, lastErrorCode: 'card_declined' });
  });
});

test('another card that a payer enters at Stripe without returning replaces the card; a further card of the same session does not [D-33, D-32]', async ({
  scene,
}) => {
  const { env, seller, shop } = scene;
  const made = await active(scene);
  const { paymentMethodId } = await env.state(made);
  const { updatePaymentMethodLink } = await shop.merchant.get<{ updatePaymentMethodLink: string }>(
    `/subscription/get-subscription/${made.subscriptionId}`,
  );
  const page = await openPage(updatePaymentMethodLink);
  const leave = await submitForm(page, page.forms[0]!, {});
  const [url] = /http:\/\/[\d.:]+\/checkout\/cs_test_\w+/.exec(leave.html) ?? [];
  await submitCard(String(url), '5555555555554444');
  await expect.poll(async () => (await env.state(made)).paymentMethodId).not.toBe(paymentMethodId);
  expect((await lastAttempt(scene, made)).method).toMatchObject({
    brand: 'mastercard',
    status: 'LIVE',
  });
  const [session] = await env.db
    .select({ id: checkoutSessions.id })
    .from(checkoutSessions)
    .where(
      and(
        eq(checkoutSessions.subscriptionId, made.subscriptionId),
        eq(checkoutSessions.purpose, 'update_method'),
      ),
    );
  const token = await seller.enterFurtherCard(session!.id);
  await expect
    .poll(async () => (await seller.events()).map(({ hint }) => hint))
    .toContainEqual(expect.objectContaining({ kind: 'card_entry', token }));
  await seller.settled();
  expect((await lastAttempt(scene, made)).method).toMatchObject({ brand: 'mastercard' });
  await expectNothingLeft(scene);
  expect((await seller.charges()).at(-1)).toBe('succeeded 1999');
  expect(await eventsOf(scene, made.subscriptionId)).toHaveLength(PAID.length);
});

describe('an event about a charge', () => {
  test('makes the workflow look up the outcome when Stripe decides the charge later [D-40]', async ({
    scene,
  }) => {
    const { env, seller, world } = scene;
    const made = await active(scene);
    const { method } = await lastAttempt(scene, made);
    const paymentMethodId = method.gatewayMethodId.split('/')[1];
    await world.control('POST', 'outcomes', { kind: 'processing', count: 1, paymentMethodId });
    await env.sendClock(made.testClockId, Date.parse('2027-03-01T00:00:00Z'));
    const open = async () => (await lastAttempt(scene, made)).attempt;
    await expect.poll(open).toMatchObject({ state: 'UNKNOWN' });
    const { gatewayChargeId } = await open();
    await world.control('POST', 'settle', { paymentIntentId: gatewayChargeId });
    await expect.poll(open).toMatchObject({ state: 'SUCCEEDED', settledBy: 'event' });
    await expect
      .poll(async () => (await eventsOf(scene, made.subscriptionId)).slice(5))
      .toEqual(RENEWED);
    const named = (await seller.events()).filter(({ subjectId }) => subjectId === gatewayChargeId);
    expect(named.map(({ type }) => type)).toContain('payment_intent.succeeded');
    await expectNothingLeft(scene);
  });

  test('makes the subscription UNPAID when Stripe declines the charge later, and the retry plan charges again [D-30, D-40]', async ({
    scene,
  }) => {
    const { env, seller, world } = scene;
    const made = await active(scene);
    const { method } = await lastAttempt(scene, made);
    const before = (await seller.charges()).length;
    const paymentMethodId = method.gatewayMethodId.split('/')[1];
    await world.control('POST', 'outcomes', { kind: 'processing', count: 1, paymentMethodId });
    await env.sendClock(made.testClockId, Date.parse('2027-02-28T12:00:00Z'));
    const open = async () => (await lastAttempt(scene, made)).attempt;
    await expect.poll(open).toMatchObject({ state: 'UNKNOWN' });
    const { gatewayChargeId: paymentIntentId } = await open();
    await world.control('POST', 'settle', { paymentIntentId, code: 'insufficient_funds' });
    await expect
      .poll(() => env.state(made))
      .toMatchObject({
        status: 'UNPAID',
        owed: {
          lastDeclineCode: 'insufficient_funds',
          nextRetryAt: Date.parse('2027-02-28T16:00:00Z'),
        },
      });
    await env.advance(made.testClockId, '2027-02-28T16:00:00Z');
    expect(await env.state(made)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
    expect((await seller.charges()).slice(before)).toEqual(['failed 1999', 'succeeded 1999']);
    expect((await eventsOf(scene, made.subscriptionId)).slice(5)).toEqual([
      'intent.created',
      'intent.failed',
      'subscription.unpaid',
      'intent.success',
      'subscription.cycle_charged',
      'subscription.active',
    ]);
    await expectNothingLeft(scene);
  });

  test('causes no second charge when it arrives twice or before the answer to the charge [D-40]', async ({
    scene,
  }) => {
    const { env, seller, world } = scene;
    const made = await active(scene);
    const before = (await seller.charges()).length;
    const type = 'payment_intent.succeeded';
    await world.control('POST', 'events', { action: 'duplicate', type, count: 1 });
    await world.control('POST', 'events', { action: 'before_answer', type, count: 1 });
    await env.advance(made.testClockId, '2027-02-28T12:00:00Z');
    await env.advance(made.testClockId, '2027-03-31T12:00:00Z');
    await world.control('POST', 'events/release', {});
    expect((await seller.charges()).slice(before)).toEqual(['succeeded 1999', 'succeeded 1999']);
    expect((await eventsOf(scene, made.subscriptionId)).slice(5)).toEqual([...RENEWED, ...RENEWED]);
    await expectNothingLeft(scene);
  });

  test('is stored and has no effect when the payment is not ours [D-21]', async ({ scene }) => {
    const { seller, world } = scene;
    const { stripe } = seller.account;
    const { id } = await stripe.paymentIntents.create({
      amount: 500,
      currency: 'usd',
      payment_method_types: ['card'],
    });
    const stored = async () => (await seller.events()).filter(({ subjectId }) => subjectId === id);
    await expect.poll(stored).toHaveLength(1);
    expect((await stored())[0]?.handledAt).not.toBeNull();
    expect(world.failures).toEqual([]);
    await expectNothingLeft(scene);
  });
});

describe('a request with an event', () => {
  const payload = (id: string) =>
    JSON.stringify({
      id,
      object: 'event',
      type: 'payment_intent.succeeded',
      data: { object: { id: 'pi_1', object: 'payment_intent', metadata: {} } },
    });
  const signed = (body: string, secret: string, agoSeconds = 0) =>
    Stripe.webhooks.generateTestHeaderString({
      payload: body,
      secret,
      timestamp: Math.floor(Date.now() / 1_000) - agoSeconds,
    });
  const post = async (url: string, body: string, signature?: string) => {
    const headers = signature === undefined ? {} : { 'stripe-signature': signature };
    const response = await fetch(url, { method: 'POST', headers, body });
    return `${response.status} ${await response.text()}`;
  };
  const REFUSED =
    '400 {"errorCode":"bad_request","errorDescription":"The request has no valid signature of this account."}';

  test('gets the answer of an unknown account when its signature is not valid [D-20]', async ({
    scene,
  }) => {
    const { seller, shop } = scene;
    const eventId = `evt_${randomUUID()}`;
    const body = payload(eventId);
    const right = signed(body, WEBHOOK_SECRET);
    const unknown = `${shop.url}/gateways/stripe/events/acct_unknown`;
    const other = `${shop.url}/gateways/other/events/${seller.account.id}`;
    expect([
      await post(seller.eventsUrl, body),
      await post(seller.eventsUrl, body, signed(body, 'whsec_of_another_account')),
      await post(seller.eventsUrl, body, signed(body, WEBHOOK_SECRET, 3_600)),
      await post(seller.eventsUrl, `${body} `, right),
      await post(unknown, body, right),
      await post(other, body, right),
    ]).toEqual([REFUSED, REFUSED, REFUSED, REFUSED, REFUSED, REFUSED]);
    expect((await seller.events()).filter((event) => event.eventId === eventId)).toEqual([]);
  });

  test('with an unexpected shape is answered 200 and stores no event when its signature is right', async ({
    scene,
  }) => {
    const { seller } = scene;
    const before = (await seller.events()).length;
    const bodies = [
      'not JSON',
      'null',
      '[]',
      '{"id":"evt_1","object":"v2.core.event","type":"v1.billing.meter.error_report_triggered"}',
      '{"id":"evt_1","object":"event","type":"payment_intent.succeeded","data":null}',
      '{"id":"evt_1","object":"event","type":"payment_intent.succeeded","data":{"object":null}}',
      '{"id":7,"object":"event","type":"payment_intent.succeeded","data":{"object":{}}}',
      `{"id":"evt_\\u0000","object":"event","type":"a","data":{"object":{}}}`,
      `{"id":"${'e'.repeat(10_000)}","object":"event","type":"a","data":{"object":{}}}`,
    ];
    for (const body of bodies) {
      expect([body, await post(seller.eventsUrl, body, signed(body, WEBHOOK_SECRET))]).toEqual([
        body,
        '200 {}',
      ]);
    }
    expect(await seller.events()).toHaveLength(before);
    const unknown = seller.eventsUrl.replace(/[^/]+$/, '%00');
    expect(await post(unknown, 'null', signed('null', WEBHOOK_SECRET))).toBe(REFUSED);
    await expectNothingLeft(scene);
  });

  test('is stored once when it is repeated, and is refused when it exceeds 256 kB [D-10]', async ({
    scene,
  }) => {
    const { seller } = scene;
    const eventId = `evt_${randomUUID()}`;
    const body = payload(eventId);
    const right = signed(body, WEBHOOK_SECRET);
    expect(await post(seller.eventsUrl, body, right)).toBe('200 {}');
    expect(await post(seller.eventsUrl, body, right)).toBe('200 {}');
    expect((await seller.events()).filter((event) => event.eventId === eventId)).toHaveLength(1);
    const long = body + ' '.repeat(262_144);
    expect(await post(seller.eventsUrl, long, signed(long, WEBHOOK_SECRET))).toBe(
      '400 {"errorCode":"bad_request","errorDescription":"body: must be at most 256 kB"}',
    );
    await expectNothingLeft(scene);
  });
});

test('a refund that is pending at Stripe is answered as accepted, also when it is repeated, and fails with one event [D-40, D-50]', async ({
  scene,
}) => {
  const { shop, seller, world } = scene;
  const made = await active(scene);
  const { intentId: xIntentId, gatewayChargeId } = (await lastAttempt(scene, made)).attempt;
  const paid = await seller.account.stripe.paymentIntents.retrieve(gatewayChargeId!);
  const chargeId = paid.latest_charge as string;
  await world.control('POST', 'refunds/pending', { chargeId });
  const key = randomUUID();
  const refund = () => shop.merchant.post('/payments/merchant/refund', { xIntentId }, key);
  const accepted = {
    errorCode: 'payment_outcome_pending',
    message:
      '/payments/merchant/refund was answered 400 payment_outcome_pending: The gateway has accepted the refund ' +
      'and decides it later, perhaps in days. The event intent.refunded or intent.refund_failed reports the outcome.',
  };
  await expect(refund()).rejects.toMatchObject(accepted);
  await expect(refund()).rejects.toMatchObject(accepted);
  await seller.settled();
  const told = async () => (await eventsOf(scene, made.subscriptionId)).slice(5);
  expect(await told()).toEqual([]);
  await world.control('POST', 'refunds/settle', { chargeId, failure: 'lost_or_stolen_card' });
  await expect.poll(told).toEqual(['intent.refund_failed']);
  await expect(refund()).rejects.toMatchObject({
    errorCode: 'operation_not_allowed',
    message: expect.stringContaining('which failed later: ') as string,
  });
  await expectNothingLeft(scene);
  expect(await told()).toEqual(['intent.refund_failed']);
});

describe('a refund that fails at Stripe after it succeeded', () => {
  test('becomes REFUSED after Stripe’s event, and its amount can be refunded again [D-40, D-50]', async ({
    scene,
  }) => {
    const { env, shop, seller, world } = scene;
    const made = await active(scene);
    const { intentId: xIntentId } = (await lastAttempt(scene, made)).attempt;
    const refund = () =>
      shop.merchant.post<{ refundId: string }>('/payments/merchant/refund', { xIntentId });
    const { refundId } = await refund();
    const rowOf = async (id: string) => {
      const [row] = await env.db.select().from(refunds).where(eq(refunds.id, id));
      return row;
    };
    await seller.settled();
    const gatewayRefundId = (await rowOf(refundId))?.gatewayRefundId;
    await world.control('POST', 'refunds/settle', {
      refundId: gatewayRefundId,
      failure: 'expired_or_canceled_card',
    });
    const told = async () => (await eventsOf(scene, made.subscriptionId)).slice(5);
    await expect.poll(told).toEqual(['intent.refunded', 'intent.refund_failed']);
    expect((await rowOf(refundId))?.state).toBe('REFUSED');
    const again = await refund();
    await seller.settled();
    expect((await rowOf(again.refundId))?.state).toBe('SUCCEEDED');
    expect(await told()).toEqual(['intent.refunded', 'intent.refund_failed', 'intent.refunded']);
    await expectNothingLeft(scene);
  });
});

describe('a dispute of a renewal', () => {
  test('is shown and emitted when it opens and when it is lost, and does not change the subscription [D-50, D-52]', async ({
    scene,
  }) => {
    const { env, shop, seller, world } = scene;
    const made = await active(scene);
    await env.advance(made.testClockId, '2027-02-28T12:00:00Z');
    const { attempt } = await lastAttempt(scene, made);
    const { intentId } = attempt;
    const charge = await seller.account.stripe.paymentIntents.retrieve(attempt.gatewayChargeId!);
    const chargeId = charge.latest_charge as string;
    // Each of the next two events arrives twice.
    await world.control('POST', 'events', { action: 'duplicate', count: 2 });
    const { disputeId: gatewayId } = await world.control('POST', 'disputes', { chargeId });
    const told = async () => (await eventsOf(scene, made.subscriptionId)).slice(8);
    await expect.poll(told).toEqual(['intent.disputed']);
    await world.control('POST', 'disputes/close', { disputeId: gatewayId, status: 'lost' });
    await expect.poll(told).toEqual(['intent.disputed', 'intent.disputed']);
    const at = Date.parse('2027-02-28T12:00:00Z');
    await shop.news(made.subscriptionId, 5);
    const bodies = shop.receiver.received
      .map(({ event }) => event)
      .filter((event) => event.eventType === 'intent.disputed' && event['intentId'] === intentId);
    expect(bodies).toMatchObject(
      ['OPEN', 'LOST'].map((disputeStatus) => ({
        eventTime: at,
        intentId,
        status: 'SUCCESS',
        amount: 1_999,
        disputeId: expect.stringMatching(/^dp_/) as string,
        disputedAmount: 1_999,
        disputeCurrency: 'USD',
        disputeReason: 'fraudulent',
        disputeStatus,
      })),
    );
    const read = await shop.merchant.get<Record<string, unknown>>(
      `/payments/v2/get-intent/${intentId}`,
    );
    expect(read).toMatchObject({
      status: 'SUCCESS',
      disputes: [{ amount: 1_999, currency: 'USD', reason: 'fraudulent', status: 'LOST' }],
    });
    const log = async () => (await env.timeline(made)).slice(-2);
    await expect.poll(log).toMatchObject([
      { at, what: 'a payment is disputed, 19.99 USD', why: 'reason: fraudulent' },
      { at, what: 'the dispute of a payment was lost, 19.99 USD', actor: 'gateway' },
    ]);
    expect((await env.state(made)).status).toBe('ACTIVE');
    await expectNothingLeft(scene);
    expect(await told()).toEqual(['intent.disputed', 'intent.disputed']);
    await env.advance(made.testClockId, '2027-03-31T12:00:00Z');
    expect((await told()).slice(2)).toEqual(RENEWED);
  });

  test('is recorded once as lost when its events come in the wrong order [D-50]', async ({
    scene,
  }) => {
    const { env, seller, world } = scene;
    const made = await active(scene);
    const { attempt } = await lastAttempt(scene, made);
    const charge = await seller.account.stripe.paymentIntents.retrieve(attempt.gatewayChargeId!);
    const type = 'charge.dispute.created';
    await world.control('POST', 'events', { action: 'hold', type, count: 1 });
    const chargeId = charge.latest_charge as string;
    const { disputeId } = await world.control('POST', 'disputes', { chargeId });
    await world.control('POST', 'disputes/close', { disputeId, status: 'lost' });
    const rows = () =>
      env.db
        .select()
        .from(disputes)
        .where(eq(disputes.gatewayDisputeId, String(disputeId)));
    await expect.poll(rows).toMatchObject([{ status: 'LOST' }]);
    await world.control('POST', 'events/release', {});
    const received = async () =>
      (await seller.events()).filter(({ subjectId }) => subjectId === disputeId).length;
    await expect.poll(received).toBe(2);
    await expectNothingLeft(scene);
    expect(await rows()).toMatchObject([{ status: 'LOST', amountMinor: 1_999 }]);
    expect((await eventsOf(scene, made.subscriptionId)).slice(5)).toEqual(['intent.disputed']);
  });
});

test('a warning of fraud becomes one event, also if its event comes twice, and changes nothing else [D-50, D-52]', async ({
  scene,
}) => {
  const { env, seller, world } = scene;
  const made = await active(scene);
  await env.advance(made.testClockId, '2027-02-28T12:00:00Z');
  const { attempt } = await lastAttempt(scene, made);
  const charge = await seller.account.stripe.paymentIntents.retrieve(attempt.gatewayChargeId!);
  const chargeId = charge.latest_charge as string;
  const before = await env.state(made);
  await world.control('POST', 'events', { action: 'duplicate', count: 1 });
  await world.control('POST', 'fraud-warnings', { chargeId });
  const told = async () => (await eventsOf(scene, made.subscriptionId)).slice(8);
  await expect.poll(told).toEqual(['intent.fraud_warning']);
  // The network warns again of the same charge.
  await world.control('POST', 'fraud-warnings', { chargeId });
  await expectNothingLeft(scene);
  expect(await told()).toEqual(['intent.fraud_warning']);
  const body = (await env.events(made)).at(-1);
  expect(body).toMatchObject({
    eventTime: Date.parse('2027-02-28T12:00:00Z'),
    intentId: attempt.intentId,
    status: 'SUCCESS',
    amount: 1_999,
    fraudType: 'made_with_stolen_card',
  });
  expect(await env.state(made)).toEqual(before);
});

describe('a saved card', () => {
  test('is updated when the card network changes it and DELETED when it is detached at Stripe, with an event each time [D-50, D-§7]', async ({
    scene,
  }) => {
    const { seller, shop, world } = scene;
    const made = await active(scene);
    const { method } = await lastAttempt(scene, made);
    const paymentMethodId = method.gatewayMethodId.split('/')[1]!;
    const card = { lastFour: '1881', expiryMonth: 7, expiryYear: 2037 };
    await world.control('POST', 'events', { action: 'duplicate', count: 2 });
    await world.control('POST', 'cards', { paymentMethodId, ...card });
    const told = () => eventsOf(scene, method.id);
    await expect.poll(told).toEqual(['setup_method.updated']);
    await seller.settled();
    const bodies = async (count: number) =>
      vi.waitUntil(() => {
        const found = shop.receiver.received
          .map(({ event }) => event)
          .filter((event) => event['pmId'] === method.id);
        return found.length >= count && found;
      }, SOON);
    const updated = {
      pmId: method.id,
      customerId: method.customerId,
      status: 'LIVE',
      card: {
        brand: 'visa',
        country: 'US',
        lastFourDigit: '1881',
        expiryMonth: 7,
        expiryYear: 2037,
      },
    };
    expect(await bodies(1)).toMatchObject([{ sequence: 1, ...updated }]);
    await seller.account.stripe.paymentMethods.detach(paymentMethodId);
    expect(await bodies(2)).toMatchObject([
      { sequence: 1, ...updated },
      { sequence: 2, ...updated, status: 'DELETED' },
    ]);
    const { data } = await shop.merchant.get<{ data: unknown[] }>(
      `/customer/${method.customerId}/payment-method-tokens`,
    );
    expect(data).toMatchObject([{ paymentMethodId: method.id, status: 'DELETED' }]);
    await expectNothingLeft(scene);
    expect(await told()).toEqual(['setup_method.updated', 'setup_method.updated']);
  });
});

test('the sweep handles a stored event once when no workflow has handled it [D-40]', async ({
  scene,
}) => {
  const { env, seller, world } = scene;
  const made = await active(scene);
  const { attempt } = await lastAttempt(scene, made);
  const charge = await seller.account.stripe.paymentIntents.retrieve(attempt.gatewayChargeId!);
  await world.control('POST', 'events', { action: 'drop', count: 1 });
  const chargeId = charge.latest_charge as string;
  const { disputeId } = await world.control('POST', 'disputes', { chargeId });
  const gatewayDisputeId = String(disputeId);
  const eventId = `evt_${randomUUID()}`;
  const account = { merchantId: env.merchantId, gateway: seller.name };
  const type = 'charge.dispute.created';
  const gatewayChargeId = charge.id;
  await env.db.insert(gatewayEvents).values({
    ...account,
    eventId,
    type,
    subjectId: gatewayDisputeId,
    hint: { eventId, type, kind: 'dispute', gatewayDisputeId, gatewayChargeId },
    receivedAt: Date.now() - 3_600_000,
  });
  expect(await env.sweep()).toEqual({ ...NOTHING_FOUND, gatewayEvents: 1 });
  await seller.settled();
  const ofDispute = and(
    eq(disputes.merchantId, env.merchantId),
    inArray(disputes.gatewayDisputeId, [gatewayDisputeId]),
  );
  expect(await env.db.select().from(disputes).where(ofDispute)).toMatchObject([{ status: 'OPEN' }]);
  expect((await eventsOf(scene, made.subscriptionId)).slice(5)).toEqual(['intent.disputed']);
  await expectNothingLeft(scene);
});

test('a renewal that Stripe refuses is declined with processing_error and Stripe’s code, and the next retry pays it once [D-30, D-42]', async ({
  scene,
}) => {
  const { env, seller, world } = scene;
  const made = await active(scene);
  const before = (await seller.charges()).length;
  await world.faults('POST', 'faults', {
    method: 'POST',
    path: '/v1/payment_intents',
    count: 1,
    fault: 'answer',
    status: 400,
    body: { error: { type: 'invalid_request_error', code: 'amount_too_small', message: 'no' } },
  });
  await env.advance(made.testClockId, '2027-02-28T12:00:00Z');
  expect(await env.state(made)).toMatchObject({ status: 'UNPAID', cyclesCharged: 1 });
  expect((await lastAttempt(scene, made)).attempt).toMatchObject({
    state: 'DECLINED',
    errorCode: 'processing_error',
    gatewayCode: 'amount_too_small',
  });
  await env.advance(made.testClockId, '2027-02-28T16:00:00Z');
  expect(await env.state(made)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  expect((await seller.charges()).slice(before)).toEqual(['succeeded 1999']);
  await expectNothingLeft(scene);
  expect((await seller.charges()).slice(before)).toEqual(['succeeded 1999']);
});
