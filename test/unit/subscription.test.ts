import { describe, expect, test } from 'vitest';
import { upcomingCharges } from '../../domain/subscription/upcoming.ts';
import { nextPaymentAt, remainingCycleCount } from '../../domain/subscription/state.ts';
import { expectNothingFurther, HOUR, Simulation } from '../support/simulation.ts';

const declined = (code = 'card_declined') => ({ kind: 'declined', code }) as const;
const iso = (at: number | null) => (at === null ? null : new Date(at).toISOString());

describe('a checkout', () => {
  test('charges the first cycle and anchors the calendar then when there is no trial [D-05]', () => {
    const life = new Simulation('2026-01-30T10:00:00Z');
    life.runTo('2026-01-31T09:30:00Z');
    expect(life.pay()).toEqual({ kind: 'checkout', outcome: 'paid', errorCode: null });
    expect(life.state.status).toBe('ACTIVE');
    expect(iso(life.state.anchorAt)).toBe('2026-01-31T09:30:00.000Z');
    expect(iso(nextPaymentAt(life.state))).toBe('2026-02-28T09:30:00.000Z');
    expect(iso(life.state.currentPeriodEndAt)).toBe('2026-02-28T09:30:00.000Z');
    life.runTo('2026-03-31T09:30:00Z');
    expect(life.sentOn).toEqual(['2026-01-31', '2026-02-28', '2026-03-31']);
    expect(life.sends.map((send) => send.amountMinor)).toEqual([1_999, 1_999, 1_999]);
    expect(life.events).toEqual([
      'intent.success',
      'subscription.cycle_charged',
      'subscription.active',
      'intent.success',
      'subscription.cycle_charged',
      'intent.success',
      'subscription.cycle_charged',
      'subscription.ended',
    ]);
    expect(life.state).toMatchObject({ status: 'ENDED', endReason: 'completed', cyclesCharged: 3 });
    // The paid period lasts to the date of a fourth cycle. ENDED does not shorten it.
    expect(iso(life.state.currentPeriodEndAt)).toBe('2026-04-30T09:30:00.000Z');
    expectNothingFurther(life);
  });

  test('ends a subscription of one cycle when it is paid [D-§4]', () => {
    const life = new Simulation('2026-05-01T00:00:00Z', { cycleCount: 1 });
    life.pay();
    expect(life.statuses).toEqual(['CREATED', 'ENDED']);
    expect(life.state.endReason).toBe('completed');
    expectNothingFurther(life);
  });

  test('charges upfrontAmount instead of the first amount, and only once [IF-2.3]', () => {
    const life = new Simulation('2026-05-01T00:00:00Z', { upfrontAmountMinor: 500 });
    life.pay();
    life.runTo('2026-07-01T00:00:00Z');
    expect(life.sends.map((send) => send.amountMinor)).toEqual([500, 1_999, 1_999]);
    expectNothingFurther(life);
  });

  test('leaves the subscription CREATED and open to another try when it is declined [D-§4]', () => {
    const life = new Simulation('2026-05-01T00:00:00Z');
    life.replies.push(declined('insufficient_funds'));
    expect(life.pay()).toEqual({
      kind: 'checkout',
      outcome: 'declined',
      errorCode: 'insufficient_funds',
    });
    expect(life.state).toMatchObject({ status: 'CREATED', paymentMethodId: null });
    life.runTo('2026-05-01T06:00:00Z');
    expect(life.pay()).toMatchObject({ outcome: 'paid' });
    expect(life.sends.map((send) => send.key)).toEqual(['charge:in_1:1', 'charge:in_1:2']);
    expect(life.events).toEqual([
      'intent.failed',
      'intent.success',
      'subscription.cycle_charged',
      'subscription.active',
    ]);
  });

  test('ends the subscription as checkout_expired when it is not paid in time [D-§4]', () => {
    const life = new Simulation('2026-05-01T00:00:00Z');
    life.runTo('2026-05-02T00:00:00Z');
    expect(life.state).toMatchObject({ status: 'ENDED', endReason: 'checkout_expired' });
    expect(life.events).toEqual(['subscription.ended']);
    expect(life.command('completeCheckout', { paymentToken: 'p', checkoutSessionId: 'c' })).toEqual(
      {
        decision: {
          ok: false,
          code: 'operation_not_allowed',
          message: 'A subscription that is ENDED cannot be paid in its checkout.',
        },
        result: null,
      },
    );
    expectNothingFurther(life);
  });

  test('does not expire while the outcome of its payment is unknown [D-40]', () => {
    const life = new Simulation('2026-05-01T00:00:00Z');
    life.runTo('2026-05-01T23:59:59Z');
    life.replies.push({ kind: 'unknown' }, { kind: 'unknown' });
    expect(life.pay()).toBeNull();
    life.runTo('2026-05-02T00:00:05Z');
    expect(life.state.status).toBe('CREATED');
    life.runTo('2026-05-02T00:01:00Z');
    expect(life.state.status).toBe('ACTIVE');
    expect(life.sends).toHaveLength(1);
  });
});

describe('a trial', () => {
  test('charges nothing and makes its end the first anchor [D-05]', () => {
    const life = new Simulation('2026-01-24T12:00:00Z', {
      trial: { interval: 'DAY', count: 7 },
    });
    life.pay();
    expect(life.sends).toEqual([]);
    expect(life.events).toEqual(['subscription.trialing']);
    expect(iso(nextPaymentAt(life.state))).toBe('2026-01-31T12:00:00.000Z');
    life.runTo('2026-12-31T00:00:00Z');
    expect(life.sentOn).toEqual(['2026-01-31', '2026-02-28', '2026-03-31']);
    expect(life.events.slice(1, 4)).toEqual([
      'intent.success',
      'subscription.cycle_charged',
      'subscription.active',
    ]);
    expectNothingFurther(life);
  });

  test('is followed by a charge of the amount valid on the day it ends [D-§4]', () => {
    const life = new Simulation('2026-01-01T00:00:00Z', { trial: { interval: 'WEEK', count: 2 } });
    life.pay();
    life.command('edit', { newAmountMinor: 2_500 });
    life.runTo('2026-01-15T00:00:00Z');
    expect(life.sends.map((send) => [send.amountMinor, send.cycleNumber])).toEqual([[2_500, 1]]);
  });

  test('becomes UNPAID when the charge at its end is declined [D-§4]', () => {
    const life = new Simulation('2026-01-01T00:00:00Z', { trial: { interval: 'DAY', count: 1 } });
    life.pay();
    life.replies.push(declined());
    life.runTo('2026-01-02T00:00:00Z');
    expect(life.statuses).toEqual(['CREATED', 'TRIALING', 'UNPAID']);
  });
});

describe('a declined cycle', () => {
  const unpaid = (code?: string): Simulation => {
    const life = new Simulation('2026-01-31T00:00:00Z');
    life.pay();
    life.replies.push(declined(code));
    life.runTo('2026-02-28T00:00:00Z');
    return life;
  };

  test('is retried 4, 8, 12 and 24 hours after the previous automatic attempt [D-30]', () => {
    const life = unpaid();
    life.replies.push(declined(), declined(), declined(), declined());
    life.runTo('2026-12-31T00:00:00Z');
    expect(life.sends.slice(1).map((send) => iso(send.at))).toEqual([
      '2026-02-28T00:00:00.000Z',
      '2026-02-28T04:00:00.000Z',
      '2026-02-28T12:00:00.000Z',
      '2026-03-01T00:00:00.000Z',
      '2026-03-02T00:00:00.000Z',
    ]);
    expect(life.state).toMatchObject({ status: 'UNPAID', cyclesCharged: 1 });
    expect(nextPaymentAt(life.state)).toBeNull();
    expectNothingFurther(life);
  });

  test('is followed, once paid, by the first date after now: nothing is back-billed [D-§4]', () => {
    const life = unpaid();
    life.replies.push(declined(), declined(), declined(), declined());
    life.runTo('2026-05-15T00:00:00Z');
    const { result } = life.command('manualRetry', {});
    expect(result).toEqual({
      kind: 'manualRetry',
      success: true,
      minManualRetryAt: Date.parse('2026-05-15T04:00:00Z'),
      status: 'ACTIVE',
      errorCode: null,
    });
    expect(iso(nextPaymentAt(life.state))).toBe('2026-05-31T00:00:00.000Z');
    expect(remainingCycleCount(life.state)).toBe(1);
    life.runTo('2026-06-30T00:00:00Z');
    expect(life.sends.at(-1)).toMatchObject({ cycleNumber: 3, amountMinor: 1_999 });
    expect(life.state.status).toBe('ENDED');
    expectNothingFurther(life);
  });

  test('is not retried after a hard decline until the payment method changes [D-30]', () => {
    const life = unpaid('stolen_card');
    life.runTo('2026-03-15T00:00:00Z');
    expect(life.sends).toHaveLength(2);
    life.replies.push(declined());
    life.command('replacePaymentMethod', { paymentToken: 'p', checkoutSessionId: 'c' });
    expect(life.sends.at(-1)).toMatchObject({ trigger: 'new_method', cycleNumber: 2 });
    // The new method is kept although it is declined, and it restarts the retry plan.
    expect(iso(life.state.owed?.nextRetryAt ?? null)).toBe('2026-03-15T04:00:00.000Z');
    life.runTo('2026-03-15T04:00:00Z');
    expect(life.state.status).toBe('ACTIVE');
  });

  test('ends the subscription as retries_exhausted when the plan is used up [D-30]', () => {
    const life = new Simulation(
      '2026-01-01T00:00:00Z',
      {},
      { delaysMs: [HOUR], afterExhausted: 'end' },
    );
    life.pay();
    life.replies.push(declined(), declined());
    life.runTo('2026-03-01T00:00:00Z');
    expect(life.state).toMatchObject({ status: 'ENDED', endReason: 'retries_exhausted' });
    expect(life.events.slice(-4)).toEqual([
      'intent.failed',
      'subscription.unpaid',
      'intent.failed',
      'subscription.ended',
    ]);
    expectNothingFurther(life);
  });

  test('is attempted automatically at most 15 times in 30 days [D-30]', () => {
    const hourly = {
      delaysMs: Array.from({ length: 100 }, () => HOUR),
      afterExhausted: 'stay_unpaid',
    } as const;
    const life = new Simulation(
      '2026-01-01T00:00:00Z',
      {},
      { ...hourly, delaysMs: [...hourly.delaysMs] },
    );
    life.pay();
    life.replies.push(...Array.from({ length: 200 }, () => declined()));
    life.runTo('2026-06-01T00:00:00Z');
    expect(life.sends.filter((send) => send.cycleNumber === 2)).toHaveLength(15);
  });
});

describe('the upcoming charges', () => {
  test('have dates, cycle numbers and amounts [D-§7]', () => {
    const life = new Simulation('2026-01-31T00:00:00Z', { cycleCount: 4 });
    expect(upcomingCharges(life.state, 10)).toEqual([]);
    life.pay();
    expect(upcomingCharges(life.state, 2).map((one) => [iso(one.at), one.cycleNumber])).toEqual([
      ['2026-02-28T00:00:00.000Z', 2],
      ['2026-03-31T00:00:00.000Z', 3],
    ]);
    life.command('edit', { newAmountMinor: 300 });
    expect(upcomingCharges(life.state, 10).map((one) => one.amountMinor)).toEqual([300, 300, 300]);
  });
});
