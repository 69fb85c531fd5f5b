import { and, eq, sql } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { lookAtPayment, openPaymentAttempt } from '../../db/repositories/payments/charges.ts';
import { settleAttempt } from '../../db/repositories/subscriptions/attempts.ts';
import { cancelHostedPayment, withdrawPayment } from '../../db/repositories/payments/orders.ts';
import { paymentMethods } from '../../db/schema/customers.ts';
import { paymentAttempts, paymentIntents } from '../../db/schema/payments.ts';
import type { IntentRef } from '../../domain/payment-intent.ts';
import { eventually } from '../support/eventually.ts';
import { onDevServer as test } from '../support/environment.ts';
import { paidOnClock } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

const DECLINED_LATER = '4000000000000341';

const refused = (code: string, message: string) => ({ kind: 'refused', code, message });

describe('a charge of a saved method', () => {
  test('stays declined when the same request is repeated [D-36, D-40]', async ({
    env,
    payments,
  }) => {
    const ref = await payments.tokenised(DECLINED_LATER);
    const declined = { kind: 'declined', errorCode: 'card_declined' };
    expect(await env.orders.execute('payment', { ...ref, token: null })).toEqual(declined);
    expect(await env.orders.execute('payment', { ...ref, token: null })).toEqual(declined);
    expect(await payments.book(ref)).toEqual(['declined 5000 x1']);
    expect(await payments.intent(ref)).toMatchObject({
      status: 'FAILED',
      errorCode: 'card_declined',
    });
    const events = await payments.told(ref.intentId);
    expect(events.map((event) => [event['sequence'], event['eventType']])).toEqual([
      [1, 'intent.created'],
      [2, 'intent.failed'],
    ]);
    expect(events[1]).toMatchObject({
      intentId: ref.intentId,
      status: 'FAILED',
      amount: 5_000,
      currency: 'USD',
      presentmentCurrency: 'USD',
      receiptId: null,
      subscriptionId: null,
      paymentMethod: 'CARD',
      errorCode: 'card_declined',
      errorMessage: 'The card was declined.',
      metadata: {},
    });
  });

  test('is refused as not found when it is executed for another merchant [D-21]', async ({
    env,
    payments,
  }) => {
    const { intentId } = await payments.tokenised();
    const theirs = { merchantId: 'mer_0000000000000000000000', intentId, token: null };
    expect(await env.orders.execute('payment', theirs)).toEqual(
      refused('resource_not_found', 'There is no such payment.'),
    );
  });

  test('cannot be voided after it succeeded [D-40]', async ({ env, payments }) => {
    const ref = await payments.tokenised();
    await env.orders.execute('payment', { ...ref, token: null });
    expect(await withdrawPayment(env.db, ref)).toBe(false);
    expect(await payments.intent(ref)).toMatchObject({ status: 'SUCCESS' });
  });

  test('stays settled when a stalled worker reports another outcome later [D-40]', async ({
    env,
    payments,
  }) => {
    const ref = await payments.tokenised();
    await env.orders.execute('payment', { ...ref, token: null });
    const { ref: refund } = await payments.refund(ref, 700);
    expect(await env.orders.execute('refund', refund)).toEqual({ kind: 'refunded' });
    const settled = await payments.intent(ref);
    expect(settled).toMatchObject({ status: 'PARTIALLY_REFUNDED', refundedMinor: 700 });
    const attempt = await payments.attempt(ref);
    const decline = { code: 'card_declined', gatewayChargeId: null };
    for (const late of [
      { kind: 'succeeded', gatewayChargeId: attempt.gatewayChargeId ?? '' },
      { kind: 'declined', ...decline, byPerson: true },
    ] as const) {
      await env.db.transaction((tx) => settleAttempt(tx, attempt, late, Date.now()));
      expect(await payments.intent(ref)).toEqual(settled);
    }
    expect(await payments.attempts(ref)).toEqual(['1 SUCCEEDED']);
  });
});

describe('a one-time charge of a subscription on a test clock', () => {
  test('emits events with the clock’s time, in the subscription’s sequence [D-35, D-52, D-60]', async ({
    env,
    payments,
  }) => {
    const laterAt = Date.parse('2027-01-20T00:00:00Z');
    const { ref, clock } = await paidOnClock(env, '2027-01-10T00:00:00Z');
    await env.advance(clock, laterAt);
    const before = await env.state(ref);
    const { subscriptionId } = ref;
    const { customerId, paymentMethodId } = before;
    const intent = await payments.payment('one_time', {
      subscriptionId,
      customerId,
      paymentMethodId,
    });
    expect(await env.orders.execute('payment', { ...intent, token: null })).toEqual({
      kind: 'succeeded',
    });
    const events = (await payments.told(subscriptionId)).slice(-2);
    expect(
      events.map((event) => [
        event['sequence'],
        event['eventType'],
        event['eventTime'],
        event['subscriptionId'],
        event['amount'],
      ]),
    ).toEqual([
      [6, 'intent.created', laterAt, subscriptionId, 5_000],
      [7, 'intent.success', laterAt, subscriptionId, 5_000],
    ]);
    expect(await payments.intent(intent)).toMatchObject({
      createdAt: laterAt,
      succeededAt: laterAt,
    });
    // A one-time charge is no cycle, so the subscription's state is unchanged.
    expect(await env.state(ref)).toEqual(before);
  });
});

describe('a hosted payment', () => {
  test.for([
    ['saves the method for the customer when tokenise is true', true, 'LIVE'],
    [
      'leaves the method PENDING, so that no list shows it, when tokenise is false',
      false,
      'PENDING',
    ],
  ] as const)('%s [D-§7]', async ([, tokenise, status], { env, payments }) => {
    const ref = await payments.payment('hosted', { tokenise });
    const order = { ...ref, token: await payments.card() };
    expect(await env.orders.execute('payment', order)).toEqual({ kind: 'succeeded' });
    const { customerId, paymentMethodId } = await payments.intent(ref);
    expect(await payments.methodsOf(customerId)).toEqual([{ id: paymentMethodId, status }]);
  });

  test('takes another card when the first card was declined, and takes each token only once [D-40]', async ({
    env,
    payments,
  }) => {
    const ref = await payments.payment('hosted');
    const first = { ...ref, token: await payments.card(DECLINED_LATER) };
    const second = { ...ref, token: await payments.card() };
    const third = { ...ref, token: await payments.card() };
    expect(await env.orders.execute('payment', first)).toEqual({
      kind: 'declined',
      errorCode: 'card_declined',
    });
    expect(await env.orders.execute('payment', second)).toEqual({ kind: 'succeeded' });
    // A repeated token gets the outcome of its first use. A new card is refused, because the payment has
    // succeeded.
    expect(await env.orders.execute('payment', first)).toEqual({
      kind: 'declined',
      errorCode: 'card_declined',
    });
    expect(await env.orders.execute('payment', second)).toEqual({ kind: 'succeeded' });
    expect(await env.orders.execute('payment', third)).toEqual(
      refused('operation_not_allowed', 'The payment has already succeeded.'),
    );
    expect(await payments.book(ref)).toEqual(['declined 5000 x1', 'succeeded 5000 x1']);
    expect(await payments.attempts(ref)).toEqual(['1 DECLINED', '2 SUCCEEDED']);
    expect(await payments.story(ref.intentId)).toEqual([
      'intent.created CREATED',
      'intent.failed FAILED',
      'intent.success SUCCESS',
    ]);
  });

  test('is refused when it is executed without a card token [D-40]', async ({ env, payments }) => {
    const ref = await payments.payment('hosted');
    expect(await env.orders.execute('payment', { ...ref, token: null })).toEqual(
      refused('operation_not_allowed', 'The payment waits for its payer.'),
    );
  });

  test('takes no card when its page has expired [D-40]', async ({ env, payments }) => {
    const nowAt = Date.now();
    const checkout = { id: 'cs_expired', token: 'of an expired page', expiresAt: nowAt };
    const ref = await payments.payment('hosted', { checkout });
    expect(await env.orders.execute('payment', { ...ref, token: await payments.card() })).toEqual(
      refused('operation_not_allowed', 'The payment was cancelled, or its page expired.'),
    );
    expect(await payments.book(ref)).toEqual([]);
  });
});

/** Runs `during`. Its read of the charges waits until the payment's charge is declined. */
async function declinedDuring<T>(
  { db }: TestEnvironment,
  { merchantId, intentId }: IntentRef,
  during: () => Promise<T>,
): Promise<T> {
  const isWaiting = sql`select from pg_locks where not granted and relation = 'payment_attempt'::regclass`;
  return (
    await db.transaction(async (tx) => {
      await tx.execute(sql`lock table ${paymentAttempts} in access exclusive mode`);
      const running = during();
      await eventually(async () => expect(await tx.execute(isWaiting)).toHaveLength(1));
      const declined = { state: 'DECLINED', errorCode: 'card_declined' } as const;
      const ofIntent = and(
        eq(paymentAttempts.merchantId, merchantId),
        eq(paymentAttempts.intentId, intentId),
      );
      await tx.update(paymentAttempts).set(declined).where(ofIntent);
      await tx
        .update(paymentIntents)
        .set({ status: 'FAILED' })
        .where(and(eq(paymentIntents.merchantId, merchantId), eq(paymentIntents.id, intentId)));
      return { running };
    })
  ).running;
}

test('a card is not refused for good when the charge of another card is declined meanwhile [D-40]', async ({
  env,
  payments,
}) => {
  const ref = await payments.payment('hosted');
  const [first, second] = [await payments.redeemed(await payments.card()), await payments.card()];
  const order = { ...ref, token: { paymentToken: 'first', checkoutSessionId: 'cs_first' } };
  await openPaymentAttempt(env.db, order, first.paymentMethodId, Date.now());
  const look = () => lookAtPayment(env.db, { ...ref, token: second }, Date.now());
  // The look reads the intent before this commit, and the charges after it.
  expect(await declinedDuring(env, ref, look)).toEqual({
    kind: 'refused',
    outcome: refused('payment_outcome_pending', 'The outcome of another try is not known yet.'),
  });
  expect(await look()).toMatchObject({ kind: 'open' });
});

describe('the cancellation of a hosted payment', () => {
  const cancel = (env: TestEnvironment, ref: { merchantId: string; intentId: string }) =>
    env.db.transaction((tx) => cancelHostedPayment(tx, ref, Date.now()));

  test('causes the refusal of every later card [D-41]', async ({ env, payments }) => {
    const ref = await payments.payment('hosted');
    expect(await cancel(env, ref)).toEqual({ ok: true });
    expect(
      await env.orders.execute('payment', { ...ref, token: await payments.card() }),
    ).toMatchObject({
      code: 'operation_not_allowed',
    });
    expect(await payments.intent(ref)).toMatchObject({ status: 'CANCELLED' });
    expect(await cancel(env, ref)).toEqual({
      ok: false,
      message: 'The payment is cancelled, or its page has expired.',
    });
  });
});

describe('a setup session', () => {
  test('saves the next card once when the first card was declined [D-50, D-§7]', async ({
    env,
    payments,
  }) => {
    const session = await payments.setup();
    const { merchantId, setupMethodId, customerId } = session;
    const order = { merchantId, setupMethodId };
    const declined = { ...order, token: await payments.card('4000000000000002') };
    expect(await env.orders.execute('setupMethod', declined)).toEqual({
      kind: 'declined',
      errorCode: 'card_declined',
    });
    expect(await payments.told(setupMethodId)).toEqual([]);

    const good = { ...order, token: await payments.card() };
    const saved = await env.orders.execute('setupMethod', good);
    const [method] = await payments.methodsOf(customerId);
    expect(saved).toEqual({ kind: 'saved', paymentMethodId: method?.id });
    expect(method?.status).toBe('LIVE');
    // The same token returns the same method again, and another card is refused.
    expect(await env.orders.execute('setupMethod', good)).toEqual(saved);
    expect(
      await env.orders.execute('setupMethod', { ...order, token: await payments.card() }),
    ).toEqual(
      refused('operation_not_allowed', 'A payment method was saved in this session already.'),
    );
    const live = (await payments.methodsOf(customerId)).filter(({ status }) => status === 'LIVE');
    expect(live).toEqual([method]);

    const events = await payments.told(setupMethodId);
    expect(events).toEqual([
      {
        eventId: events[0]?.['eventId'],
        eventType: 'setup_method.success',
        eventTime: events[0]?.['eventTime'],
        sequence: 1,
        setupMethodId,
        pmId: method?.id,
        customerId,
        status: 'SUCCESS',
        metadata: { plan: 'oolong' },
      },
    ]);
  });

  test('takes no card when it has expired [D-§7]', async ({ env, payments }) => {
    const { merchantId, setupMethodId, customerId } = await payments.setup(Date.now());
    const order = { merchantId, setupMethodId, token: await payments.card() };
    expect(await env.orders.execute('setupMethod', order)).toEqual(
      refused('operation_not_allowed', 'The session is over; nothing was saved.'),
    );
    expect(await payments.methodsOf(customerId)).toEqual([]);
  });

  test('saves one card when two cards are submitted at once [D-50]', async ({ env, payments }) => {
    const { merchantId, setupMethodId, customerId } = await payments.setup();
    const order = { merchantId, setupMethodId };
    const cards = [await payments.card(), await payments.card()];
    const outcomes = await Promise.all(
      cards.map((token) => env.orders.execute('setupMethod', { ...order, token })),
    );
    expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual(['refused', 'saved']);
    const live = await env.db
      .select({ status: paymentMethods.status })
      .from(paymentMethods)
      .where(eq(paymentMethods.customerId, customerId));
    expect(live.filter(({ status }) => status === 'LIVE')).toHaveLength(1);
    expect(await payments.story(setupMethodId)).toEqual(['setup_method.success SUCCESS']);
  });
});
