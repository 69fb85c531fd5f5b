import { eq, sql as raw } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { withdrawRefund } from '../../db/repositories/payments/refunds.ts';
import { refunds } from '../../db/schema/payments.ts';
import type { RefundRef } from '../../domain/refund.ts';
import { orderWorkflowId } from '../../workflows/orders/messages.ts';
import { onDevServer } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import { untilAccepted } from '../support/until-accepted.ts';

const test = onDevServer;

test.afterEach(async ({ env }) => {
  await env.control('DELETE', '/control/faults');
});

const fault = (env: TestEnvironment, what: object) =>
  env.control('POST', '/control/faults', { operation: 'refund', count: 1, match: {}, ...what });

/** Executes the refund. Repeats the call while no worker accepts it, as API clients do. */
const refund = (env: TestEnvironment, ref: RefundRef) =>
  untilAccepted(() => env.orders.execute('refund', ref));

const refused = (message: string) => ({ kind: 'refused', code: 'operation_not_allowed', message });

const PAID = ['intent.created CREATED', 'intent.success SUCCESS'];

describe('a refund', () => {
  test('refunds the whole amount once when it names no amount and is executed three times [D-40, D-§7, IF-6]', async ({
    env,
    payments,
  }) => {
    const paid = await payments.paid({ receiptId: 'order-7', metadata: { shoe: 'left' } });
    const { ref, kind } = await payments.refund(paid);
    expect(kind).toBe('inserted');
    const outcomes = await Promise.all([1, 2, 3].map(() => refund(env, ref)));
    expect(outcomes).toEqual(Array.from({ length: 3 }, () => ({ kind: 'refunded' })));
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 5000']);
    expect(await payments.intent(paid)).toMatchObject({ status: 'REFUNDED', refundedMinor: 5_000 });
    const { refundedAt } = await payments.refundRow(ref);
    const events = await payments.told(paid.intentId);
    expect(await payments.story(paid.intentId)).toEqual([...PAID, 'intent.refunded REFUNDED']);
    expect(events[2]).toEqual({
      ...events[1],
      eventId: events[2]?.['eventId'],
      eventType: 'intent.refunded',
      eventTime: refundedAt,
      sequence: 3,
      status: 'REFUNDED',
      refundId: ref.refundId,
      refundedAmount: 5_000,
    });
    expect(events[1]).not.toHaveProperty('refundId');
  });

  test('is refused when all refunds together would exceed the paid amount [D-40, D-§7]', async ({
    env,
    payments,
  }) => {
    const paid = await payments.paid();
    const first = await payments.refund(paid, 2_000);
    expect(await refund(env, first.ref)).toEqual({ kind: 'refunded' });
    expect(await payments.intent(paid)).toMatchObject({
      status: 'PARTIALLY_REFUNDED',
      refundedMinor: 2_000,
    });
    expect(await payments.refund(paid, 3_001)).toMatchObject(
      refused('No more than 30.00 USD is left to refund.'),
    );
    const second = await payments.refund(paid, 1_000);
    // A pending refund also reduces the refundable amount.
    expect(await payments.refund(paid, 2_001)).toMatchObject(
      refused('No more than 20.00 USD is left to refund.'),
    );
    expect(await refund(env, second.ref)).toEqual({ kind: 'refunded' });
    const rest = await payments.refund(paid);
    expect(await refund(env, rest.ref)).toEqual({ kind: 'refunded' });
    expect(await payments.refundRow(rest.ref)).toMatchObject({ amountMinor: 2_000 });
    expect(await payments.refund(paid, 1)).toMatchObject(
      refused('The whole payment is already refunded, or its refund is not finished yet.'),
    );
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 5000']);
    const events = (await payments.told(paid.intentId)).slice(2);
    expect(events.map((event) => [event['status'], event['refundedAmount']])).toEqual([
      ['PARTIALLY_REFUNDED', 2_000],
      ['PARTIALLY_REFUNDED', 1_000],
      ['REFUNDED', 2_000],
    ]);
  });

  test('is made once when two full refunds are requested at once [D-40]', async ({
    env,
    payments,
  }) => {
    const paid = await payments.paid();
    const both = await Promise.all([payments.refund(paid), payments.refund(paid)]);
    expect(both.map(({ kind }) => kind).toSorted()).toEqual(['inserted', 'refused']);
    const outcomes = await Promise.all(both.map(({ ref }) => refund(env, ref)));
    expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual(['refunded', 'refused']);
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 5000']);
    expect(await payments.story(paid.intentId)).toEqual([...PAID, 'intent.refunded REFUNDED']);
  });

  test('emits its event at the time of the test clock, in the subscription’s sequence, when the subscription is on a test clock [D-52, D-60]', async ({
    env,
    payments,
  }) => {
    const createdAt = Date.parse('2027-01-10T00:00:00Z');
    const clock = await env.createClock(createdAt);
    const subscription = await env.create({ createdAt, testClockId: clock });
    await payCheckout(env, subscription);
    const laterAt = Date.parse('2027-01-20T00:00:00Z');
    await env.advance(clock, laterAt);
    const before = await env.state(subscription);
    const [created] = await payments.told(subscription.subscriptionId);
    const paid = { merchantId: env.merchantId, intentId: String(created?.['intentId']) };
    const { ref } = await payments.refund(paid, 500);
    expect(await refund(env, ref)).toEqual({ kind: 'refunded' });
    expect((await payments.told(subscription.subscriptionId)).at(-1)).toMatchObject({
      sequence: 6,
      eventType: 'intent.refunded',
      eventTime: laterAt,
      status: 'PARTIALLY_REFUNDED',
      amount: 1_999,
      refundedAmount: 500,
    });
    expect(await env.state(subscription)).toEqual(before);

    // While a test clock advances, clock_reached_at lags behind it. The eventTime must not decrease even then.
    await env.db.execute(raw`update subscription set clock_reached_at = created_at`);
    const again = await payments.refund(paid, 100);
    expect(await refund(env, again.ref)).toEqual({ kind: 'refunded' });
    expect((await payments.told(subscription.subscriptionId)).at(-1)).toMatchObject({
      sequence: 7,
      eventTime: laterAt,
      refundedAmount: 100,
    });
  });
});

describe('a lost answer to a refund', () => {
  test.for([
    ['the gateway refunded and the connection broke', { fault: 'lose_answer' }],
    ['the connection broke before the gateway refunded', { fault: 'lose_answer', effect: 'none' }],
  ] as const)('leads to one refund when %s [D-40]', async ([, what], { env, payments }) => {
    const paid = await payments.paid();
    const { ref } = await payments.refund(paid, 2_000);
    await fault(env, what);
    expect(await refund(env, ref)).toEqual({ kind: 'refunded' });
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 2000']);
    expect(await payments.story(paid.intentId)).toEqual([
      ...PAID,
      'intent.refunded PARTIALLY_REFUNDED',
    ]);
  });

  test('leaves the refund open for the sweep when its workflow was terminated [D-40]', async ({
    env,
    payments,
  }) => {
    const paid = await payments.paid();
    const { ref } = await payments.refund(paid);
    await fault(env, { fault: 'lose_answer', count: 1_000 });
    const refunding = env.orders.execute('refund', ref);
    await expect.poll(async () => (await payments.refundRow(ref)).state).toBe('UNKNOWN');
    // If the local activity timed out after 3 s, the activity on the queue must have ended, too.
    const handle = env.client.workflow.getHandle(orderWorkflowId('refund', ref.refundId));
    await eventually(async () => {
      const { raw } = await handle.describe();
      expect([raw.pendingActivities, raw.pendingWorkflowTask ?? null]).toEqual([[], null]);
    });
    expect(await payments.refund(paid, 1)).toMatchObject({ kind: 'refused' });
    expect(await withdrawRefund(env.db, ref)).toBe(false);
    await handle.terminate('clicked');
    expect(await refunding).toEqual({ kind: 'pending' });
    await env.control('DELETE', '/control/faults');
    await env.age('refund', ref.refundId);
    expect(await env.sweep()).toMatchObject({ openRefunds: 1, failed: 0 });
    expect(await env.sweep()).toMatchObject({ openRefunds: 0 });
    expect(await refund(env, ref)).toEqual({ kind: 'refunded' });
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 5000']);
    expect(await payments.story(paid.intentId)).toEqual([...PAID, 'intent.refunded REFUNDED']);
  });
});

describe('a refund that did not happen', () => {
  test('frees its amount and emits no event when the gateway refuses it [D-§7]', async ({
    env,
    payments,
  }) => {
    const paid = await payments.paid();
    const { ref } = await payments.refund(paid);
    await env.db
      .update(refunds)
      .set({ gatewayChargeId: 'ch_of_nobody' })
      .where(eq(refunds.id, ref.refundId));
    const message = 'The gateway refused the refund: charge_not_found.';
    expect(await refund(env, ref)).toEqual({ kind: 'refused', message });
    expect(await refund(env, ref)).toEqual({ kind: 'refused', message });
    expect(await payments.intent(paid)).toMatchObject({ status: 'SUCCESS', refundedMinor: 0 });
    expect(await payments.story(paid.intentId)).toEqual(PAID);
    const next = await payments.refund(paid);
    expect(await refund(env, next.ref)).toEqual({ kind: 'refunded' });
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 5000']);
  });
});
