import { describe, expect, test } from 'vitest';
import { upcomingCharges } from '../../domain/subscription/upcoming.ts';
import { nextPaymentAt, remainingCycleCount } from '../../domain/subscription/state.ts';
import { expectNothingFurther, HOUR, Simulation } from '../support/simulation.ts';

const declined = (code = 'card_declined') => ({ kind: 'declined', code }) as const;
const iso = (at: number | null) => (at === null ? null : new Date(at).toISOString());

describe('a checkout', () => {
  test('charges the first cycle and sets the anchor when there is no trial [D-05]', () => {
    const simulation = new Simulation('2026-01-30T10:00:00Z');
    simulation.runTo('2026-01-31T09:30:00Z');
    expect(simulation.pay()).toEqual({ kind: 'checkout', outcome: 'paid', errorCode: null });
    expect(simulation.state.status).toBe('ACTIVE');
    expect(iso(simulation.state.anchorAt)).toBe('2026-01-31T09:30:00.000Z');
    expect(iso(nextPaymentAt(simulation.state))).toBe('2026-02-28T09:30:00.000Z');
    expect(iso(simulation.state.currentPeriodEndAt)).toBe('2026-02-28T09:30:00.000Z');
    simulation.runTo('2026-03-31T09:30:00Z');
    expect(simulation.sentOn).toEqual(['2026-01-31', '2026-02-28', '2026-03-31']);
    expect(simulation.sends.map((send) => send.amountMinor)).toEqual([1_999, 1_999, 1_999]);
    expect(simulation.events).toEqual([
      'intent.success',
      'subscription.cycle_charged',
      'subscription.active',
      'intent.success',
      'subscription.cycle_charged',
      'intent.success',
      'subscription.cycle_charged',
      'subscription.ended',
    ]);
    expect(simulation.state).toMatchObject({
      status: 'ENDED',
      endReason: 'completed',
      cyclesCharged: 3,
    });
    // The paid period lasts to the date of a fourth cycle. The status ENDED does not shorten the period.
    expect(iso(simulation.state.currentPeriodEndAt)).toBe('2026-04-30T09:30:00.000Z');
    expectNothingFurther(simulation);
  });

  test('ends a subscription of one cycle when it is paid [D-§4]', () => {
    const simulation = new Simulation('2026-05-01T00:00:00Z', { cycleCount: 1 });
    simulation.pay();
    expect(simulation.statuses).toEqual(['CREATED', 'ENDED']);
    expect(simulation.state.endReason).toBe('completed');
    expectNothingFurther(simulation);
  });

  test('charges upfrontAmount instead of the amount for the first cycle only [IF-2.3]', () => {
    const simulation = new Simulation('2026-05-01T00:00:00Z', { upfrontAmountMinor: 500 });
    simulation.pay();
    simulation.runTo('2026-07-01T00:00:00Z');
    expect(simulation.sends.map((send) => send.amountMinor)).toEqual([500, 1_999, 1_999]);
    expectNothingFurther(simulation);
  });

  test('leaves the subscription CREATED and open to another card when its payment is declined [D-§4]', () => {
    const simulation = new Simulation('2026-05-01T00:00:00Z');
    simulation.replies.push(declined('insufficient_funds'));
    expect(simulation.pay()).toEqual({
      kind: 'checkout',
      outcome: 'declined',
      errorCode: 'insufficient_funds',
    });
    expect(simulation.state).toMatchObject({ status: 'CREATED', paymentMethodId: null });
    simulation.runTo('2026-05-01T06:00:00Z');
    expect(simulation.pay()).toMatchObject({ outcome: 'paid' });
    expect(simulation.sends.map((send) => send.key)).toEqual([
      'charge:in_101:1',
      'charge:in_101:2',
    ]);
    expect(simulation.events).toEqual([
      'intent.failed',
      'intent.success',
      'subscription.cycle_charged',
      'subscription.active',
    ]);
  });

  test('ends the subscription as checkout_expired when it is not paid in time [D-§4]', () => {
    const simulation = new Simulation('2026-05-01T00:00:00Z');
    simulation.runTo('2026-05-02T00:00:00Z');
    expect(simulation.state).toMatchObject({ status: 'ENDED', endReason: 'checkout_expired' });
    expect(simulation.events).toEqual(['subscription.ended']);
    expect(
      simulation.command('completeCheckout', { paymentToken: 'p', checkoutSessionId: 'c' }),
    ).toEqual({
      decision: {
        ok: false,
        code: 'operation_not_allowed',
        message: 'A subscription that is ENDED cannot be paid in its checkout.',
      },
      result: null,
    });
    expectNothingFurther(simulation);
  });

  test('does not expire while the outcome of its payment is unknown [D-40]', () => {
    const simulation = new Simulation('2026-05-01T00:00:00Z');
    simulation.runTo('2026-05-01T23:59:59Z');
    simulation.replies.push({ kind: 'unknown' }, { kind: 'unknown' });
    expect(simulation.pay()).toBeNull();
    simulation.runTo('2026-05-02T00:00:05Z');
    expect(simulation.state.status).toBe('CREATED');
    simulation.runTo('2026-05-02T00:01:00Z');
    expect(simulation.state.status).toBe('ACTIVE');
    expect(simulation.sends).toHaveLength(1);
  });
});

describe('a trial', () => {
  test('charges nothing and makes its end the first anchor [D-05]', () => {
    const simulation = new Simulation('2026-01-24T12:00:00Z', {
      trial: { interval: 'DAY', count: 7 },
    });
    simulation.pay();
    expect(simulation.sends).toEqual([]);
    expect(simulation.events).toEqual(['subscription.trialing']);
    expect(iso(nextPaymentAt(simulation.state))).toBe('2026-01-31T12:00:00.000Z');
    simulation.runTo('2026-12-31T00:00:00Z');
    expect(simulation.sentOn).toEqual(['2026-01-31', '2026-02-28', '2026-03-31']);
    expect(simulation.events.slice(1, 4)).toEqual([
      'intent.success',
      'subscription.cycle_charged',
      'subscription.active',
    ]);
    expectNothingFurther(simulation);
  });

  test('is followed by a charge of the amount valid on the day it ends [D-§4]', () => {
    const simulation = new Simulation('2026-01-01T00:00:00Z', {
      trial: { interval: 'WEEK', count: 2 },
    });
    simulation.pay();
    simulation.command('edit', { newAmountMinor: 2_500 });
    simulation.runTo('2026-01-15T00:00:00Z');
    expect(simulation.sends.map((send) => [send.amountMinor, send.cycleNumber])).toEqual([
      [2_500, 1],
    ]);
  });

  test('leads to UNPAID when the charge at its end is declined [D-§4]', () => {
    const simulation = new Simulation('2026-01-01T00:00:00Z', {
      trial: { interval: 'DAY', count: 1 },
    });
    simulation.pay();
    simulation.replies.push(declined());
    simulation.runTo('2026-01-02T00:00:00Z');
    expect(simulation.statuses).toEqual(['CREATED', 'TRIALING', 'UNPAID']);
  });
});

describe('a declined cycle', () => {
  const unpaid = (code?: string): Simulation => {
    const simulation = new Simulation('2026-01-31T00:00:00Z');
    simulation.pay();
    simulation.replies.push(declined(code));
    simulation.runTo('2026-02-28T00:00:00Z');
    return simulation;
  };

  test('is retried 4, 8, 12 and 24 hours after the previous automatic attempt [D-30]', () => {
    const simulation = unpaid();
    simulation.replies.push(declined(), declined(), declined(), declined());
    simulation.runTo('2026-12-31T00:00:00Z');
    expect(simulation.sends.slice(1).map((send) => iso(send.at))).toEqual([
      '2026-02-28T00:00:00.000Z',
      '2026-02-28T04:00:00.000Z',
      '2026-02-28T12:00:00.000Z',
      '2026-03-01T00:00:00.000Z',
      '2026-03-02T00:00:00.000Z',
    ]);
    expect(simulation.state).toMatchObject({ status: 'UNPAID', cyclesCharged: 1 });
    expect(nextPaymentAt(simulation.state)).toBeNull();
    expectNothingFurther(simulation);
  });

  test('is followed, once it is paid, by the first date in the future, and the dates in between are not charged [D-§4]', () => {
    const simulation = unpaid();
    simulation.replies.push(declined(), declined(), declined(), declined());
    simulation.runTo('2026-05-15T00:00:00Z');
    const { result } = simulation.command('manualRetry', {});
    expect(result).toEqual({
      kind: 'manualRetry',
      success: true,
      minManualRetryAt: Date.parse('2026-05-15T04:00:00Z'),
      status: 'ACTIVE',
      errorCode: null,
    });
    expect(iso(nextPaymentAt(simulation.state))).toBe('2026-05-31T00:00:00.000Z');
    expect(remainingCycleCount(simulation.state)).toBe(1);
    simulation.runTo('2026-06-30T00:00:00Z');
    expect(simulation.sends.at(-1)).toMatchObject({ cycleNumber: 3, amountMinor: 1_999 });
    expect(simulation.state.status).toBe('ENDED');
    expectNothingFurther(simulation);
  });

  test('is not retried after a hard decline until the payment method changes [D-30]', () => {
    const simulation = unpaid('stolen_card');
    simulation.runTo('2026-03-15T00:00:00Z');
    expect(simulation.sends).toHaveLength(2);
    simulation.replies.push(declined());
    simulation.command('replacePaymentMethod', { paymentToken: 'p', checkoutSessionId: 'c' });
    expect(simulation.sends.at(-1)).toMatchObject({ trigger: 'new_method', cycleNumber: 2 });
    // The new method is kept although its charge is declined, and restarts the retry plan.
    expect(iso(simulation.state.owed?.nextRetryAt ?? null)).toBe('2026-03-15T04:00:00.000Z');
    simulation.runTo('2026-03-15T04:00:00Z');
    expect(simulation.state.status).toBe('ACTIVE');
  });

  test('ends the subscription as retries_exhausted after the last retry when the plan says so [D-30]', () => {
    const simulation = new Simulation(
      '2026-01-01T00:00:00Z',
      {},
      { delaysMs: [HOUR], afterExhausted: 'end' },
    );
    simulation.pay();
    simulation.replies.push(declined(), declined());
    simulation.runTo('2026-03-01T00:00:00Z');
    expect(simulation.state).toMatchObject({ status: 'ENDED', endReason: 'retries_exhausted' });
    expect(simulation.events.slice(-4)).toEqual([
      'intent.failed',
      'subscription.unpaid',
      'intent.failed',
      'subscription.ended',
    ]);
    expectNothingFurther(simulation);
  });

  test('is attempted automatically at most 15 times in 30 days [D-30]', () => {
    const hourly = {
      delaysMs: Array.from({ length: 100 }, () => HOUR),
      afterExhausted: 'stay_unpaid',
    } as const;
    const simulation = new Simulation(
      '2026-01-01T00:00:00Z',
      {},
      { ...hourly, delaysMs: [...hourly.delaysMs] },
    );
    simulation.pay();
    simulation.replies.push(...Array.from({ length: 200 }, () => declined()));
    simulation.runTo('2026-06-01T00:00:00Z');
    expect(simulation.sends.filter((send) => send.cycleNumber === 2)).toHaveLength(15);
  });
});

describe('the upcoming charges', () => {
  test('have dates, cycle numbers and amounts [D-§7]', () => {
    const simulation = new Simulation('2026-01-31T00:00:00Z', { cycleCount: 4 });
    expect(upcomingCharges(simulation.state, 10, simulation.now)).toEqual([]);
    simulation.pay();
    expect(
      upcomingCharges(simulation.state, 2, simulation.now).map((one) => [
        iso(one.at),
        one.cycleNumber,
      ]),
    ).toEqual([
      ['2026-02-28T00:00:00.000Z', 2],
      ['2026-03-31T00:00:00.000Z', 3],
    ]);
    simulation.command('edit', { newAmountMinor: 300 });
    expect(
      upcomingCharges(simulation.state, 10, simulation.now).map((one) => one.amountMinor),
    ).toEqual([300, 300, 300]);
  });

  test('leave out the dates that pass before an owed cycle is paid [D-§7, D-§4]', () => {
    const simulation = new Simulation('2026-01-31T00:00:00Z', { cycleCount: 4 });
    simulation.pay();
    simulation.replies.push(...Array.from({ length: 5 }, () => declined()));
    simulation.runTo('2026-04-10T00:00:00Z');
    const listed = () =>
      upcomingCharges(simulation.state, 10, simulation.now).map(({ at, cycleNumber }) =>
        [at === null ? at : iso(at), cycleNumber].join(' '),
      );
    expect(listed()).toEqual([' 2', '2026-04-30T00:00:00.000Z 3', '2026-05-31T00:00:00.000Z 4']);
    simulation.command('edit', { newNextPaymentAt: Date.parse('2026-06-05T00:00:00Z') });
    const planned = [
      '2026-06-05T00:00:00.000Z 2',
      '2026-07-05T00:00:00.000Z 3',
      '2026-08-05T00:00:00.000Z 4',
    ];
    expect(listed()).toEqual(planned);
    simulation.runTo('2026-12-31T00:00:00Z');
    // The charges have the dates and cycles of the list.
    expect(simulation.sends.slice(-3).map((send) => `${iso(send.at)} ${send.cycleNumber}`)).toEqual(
      planned,
    );
  });
});
