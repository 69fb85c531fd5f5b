import { describe, expect } from 'vitest';
import { paymentReviews } from '../../db/schema/payment-reviews.ts';
import { onDevServerWith } from '../support/environment.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/**
 * The sandbox decides each charge and each refund 100 ms after its request. It has no look-up, and sends no
 * events in these tests.
 */
const test = onDevServerWith({ gatewayPersonality: 'pending' });

test.afterEach(({ env }) => env.control('DELETE', '/control/faults'));

const DUE = '2027-02-10T00:00:00Z';

async function subscribed(env: TestEnvironment) {
  const createdAt = Date.parse('2027-01-10T00:00:00Z');
  const clock = await env.createClock(createdAt);
  const ref = await env.create({ createdAt, testClockId: clock, terms: { cycleCount: 2 } });
  await payCheckout(env, ref);
  return { clock, ref };
}

const linesOf = async (env: TestEnvironment, ref: Parameters<TestEnvironment['book']>[0]) =>
  (await env.book(ref)).map(({ key, outcome }) => `${key.split(':')[2]} ${outcome}`);

const typesOf = async (env: TestEnvironment, ref: Parameters<TestEnvironment['events']>[0]) =>
  (await env.events(ref)).map((event) => event['eventType']);

const PAID = ['intent.success', 'subscription.cycle_charged'];

describe('a subscription at a gateway that decides later', () => {
  test('is charged once for each cycle and ends when the gateway first answers that each charge is in progress [D-32, D-40]', async ({
    env,
  }) => {
    const { clock, ref } = await subscribed(env);
    await env.advance(clock, DUE);
    expect(await linesOf(env, ref)).toEqual(['1 succeeded', '1 succeeded']);
    expect(await env.state(ref)).toMatchObject({ status: 'ENDED', cyclesCharged: 2 });
    expect(await typesOf(env, ref)).toEqual([
      'intent.created',
      'subscription.created',
      ...PAID,
      'subscription.active',
      'intent.created',
      ...PAID,
      'subscription.ended',
    ]);
    await env.advance(clock, '2027-06-10T00:00:00Z');
    expect(await linesOf(env, ref)).toHaveLength(2);
  });

  test('is charged once for a cycle when the gateway’s first two answers are lost [D-32, D-40]', async ({
    env,
  }) => {
    const { clock, ref } = await subscribed(env);
    const { subscriptionId } = ref;
    const fault = { operation: 'charge', fault: 'lose_answer', count: 2 };
    await env.control('POST', '/control/faults', { ...fault, match: { subscriptionId } });
    await env.advance(clock, DUE);
    expect(await linesOf(env, ref)).toEqual(['1 succeeded', '1 succeeded']);
    expect(await env.state(ref)).toMatchObject({ status: 'ENDED', cyclesCharged: 2 });
  });

  test('becomes UNPAID when the gateway declines later, and is charged again by the retry plan [D-30]', async ({
    env,
  }) => {
    const { clock, ref } = await subscribed(env);
    const decline = { subscriptionId: ref.subscriptionId, code: 'insufficient_funds', count: 1 };
    await env.control('POST', '/control/declines', decline);
    await env.advance(clock, DUE);
    expect(await env.state(ref)).toMatchObject({
      status: 'UNPAID',
      owed: { lastDeclineCode: 'insufficient_funds', nextRetryAt: Date.parse('2027-02-10T04:00Z') },
    });
    await env.advance(clock, '2027-02-10T04:00:00Z');
    expect(await linesOf(env, ref)).toEqual(['1 succeeded', '1 declined', '2 succeeded']);
  });

  test('is not charged after a cancel when the gateway never received the charge, and no late-charge watch remains [D-§4]', async ({
    env,
  }) => {
    const { clock, ref } = await subscribed(env);
    const { subscriptionId } = ref;
    const fault = { operation: 'charge', fault: 'lose_answer', effect: 'none', count: 1_000 };
    await env.control('POST', '/control/faults', { ...fault, match: { subscriptionId } });
    await env.sendClock(clock, Date.parse(DUE));
    await expect.poll(async () => (await env.state(ref)).openAttempt?.attemptNumber).toBe(1);
    const cancel = { kind: 'cancel', commandId: 'cmd_cancel', reason: 'cancelled' } as const;
    await env.execute(ref, cancel);
    await expect
      .poll(async () => env.state(ref))
      .toMatchObject({ status: 'ENDED', openAttempt: null });
    await env.control('DELETE', '/control/faults');
    expect(await linesOf(env, ref)).toEqual(['1 succeeded']);
    // The gateway has confirmed the withdrawal, so the charge needs no manual review and no late-charge watch.
    expect(await env.db.select().from(paymentReviews)).toMatchObject([
      { decidedBy: 'perennial', closedAt: expect.any(Number) },
    ]);
  });
});

describe('a refund at a gateway that decides later and has no look-up', () => {
  test('is settled by a repeat of its request, and is made once [D-40]', async ({
    env,
    payments,
  }) => {
    const paid = await payments.paid();
    const { ref } = await payments.refund(paid, 2_000);
    const nowAt = Date.now();
    expect(await env.activities.refundPayment({ ...ref, nowAt })).toEqual({
      kind: 'pending',
      isAccepted: true,
    });
    expect((await payments.intent(paid)).status).toBe('SUCCESS');
    await expect
      .poll(() => env.activities.refundPayment({ ...ref, nowAt }))
      .toEqual({ kind: 'refunded' });
    expect(await payments.book(paid)).toEqual([
      expect.stringMatching(/^succeeded 5000 x\d+ back 2000$/),
    ]);
    expect(await payments.story(paid.intentId)).toEqual([
      'intent.created CREATED',
      'intent.success SUCCESS',
      'intent.refunded PARTIALLY_REFUNDED',
    ]);
  });
});
