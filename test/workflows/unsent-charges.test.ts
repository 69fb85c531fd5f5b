import { describe, expect } from 'vitest';
import { attemptsOf } from '../../db/repositories/payments/orders.ts';
import { findRefund } from '../../db/repositories/payments/refunds.ts';
import { intentIdOfCycle } from '../../domain/ids.ts';
import { onTimeSkippingServerWith } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { payCheckout } from '../support/pay-checkout.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const REASON = 'the gateway refused our key: key_unknown';

const test = onTimeSkippingServerWith({ sendBudget: { newSendsForMs: 100, pauseMs: 50 } }, 'test');

/** Each charge and refund is refused with 401, before the gateway reads it. */
const refuseKey = async (
  control: (method: 'POST', path: string, body: object) => Promise<object>,
) => {
  for (const operation of ['charge', 'lookup', 'refund', 'refund_lookup']) {
    const fault = { operation, fault: 'error_401', match: {}, count: 1_000_000 };
    await control('POST', '/control/faults', fault);
  }
};

describe('charges and refunds that a gateway refuses for 26 h because of our key', () => {
  test('stay due, are made once within 5 min of a valid key, and need no person [D-46, D-39]', async ({
    env,
    payments,
  }) => {
    const { server, control } = env;
    const createdAt = await server.currentTimeMs();
    const terms = { cycleCount: 2, interval: 'DAY' } as const;
    const ref = await env.create({ createdAt, terms });
    await payCheckout(env, ref);
    const paid = await payments.paid();
    const { ref: refund } = await payments.refund(paid, 1_200);
    const order = await payments.tokenised();
    const known = (await env.events(ref)).length;

    await server.sleep(createdAt + DAY - MINUTE / 2 - (await server.currentTimeMs()));
    await refuseKey(control);
    await env.orders.recheck('refund', refund);
    await env.orders.recheck('payment', { ...order, token: null });
    await server.sleep(26 * HOUR);

    const intentId = intentIdOfCycle(ref.subscriptionId, 2);
    const cycle = { merchantId: env.merchantId, intentId };
    for (const intent of [cycle, order]) {
      expect(await attemptsOf(env.db, intent)).toMatchObject([
        { state: 'UNSENT', reason: REASON, isAccountRefused: true, sentAt: [], settledAt: null },
      ]);
    }
    expect(await env.state(ref)).toMatchObject({
      status: 'ACTIVE',
      owed: { cycleNumber: 2, nextRetryAt: null, lastDeclineCode: null },
      openAttempt: { unsentReason: REASON, lookups: 4 },
    });
    expect(await findRefund(env.db, env.merchantId, refund.refundId)).toMatchObject({
      state: 'CREATED',
      reason: REASON,
      firstSentAt: null,
    });
    const newTypes = async () =>
      (await env.events(ref)).slice(known).map((event) => event['eventType']);
    expect(await newTypes()).toEqual(['intent.created']);

    await control('DELETE', '/control/faults');
    await server.sleep(5 * MINUTE);
    await eventually(async () => expect(await env.state(ref)).toMatchObject({ status: 'ENDED' }));
    await eventually(async () =>
      expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 1200']),
    );
    await eventually(async () => expect(await payments.book(order)).toEqual(['succeeded 5000 x1']));
    const book = async () =>
      (await env.book(ref)).map(({ outcome, amountMinor, sentCount }) => [
        outcome,
        amountMinor,
        sentCount,
      ]);
    const charged = [
      ['succeeded', 1_999, 1],
      ['succeeded', 1_999, 1],
    ];
    expect(await book()).toEqual(charged);
    const [attempt] = await attemptsOf(env.db, cycle);
    expect(attempt).toMatchObject({ state: 'SUCCEEDED', settledBy: 'gateway', attemptNumber: 1 });
    expect(attempt?.sentAt).toHaveLength(1);
    expect((await env.timeline(ref)).slice(-2)).toMatchObject([
      { what: 'payment not sent, and still due', why: REASON, actor: 'gateway' },
      { what: 'cycle 2 paid, 19.99 USD', actor: 'schedule' },
    ]);
    const events = [
      'intent.created',
      'intent.success',
      'subscription.cycle_charged',
      'subscription.ended',
    ];
    expect(await newTypes()).toEqual(events);

    await server.sleep(3 * HOUR);
    expect(await book()).toEqual(charged);
    expect(await newTypes()).toEqual(events);
  });
});
