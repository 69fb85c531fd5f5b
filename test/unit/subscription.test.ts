import { describe, expect, test } from 'vitest';
import { remainingCycleCount } from '../../domain/subscription/state.ts';
import {
  at,
  declined,
  declines,
  expectNothingFurther,
  HOUR,
  iso,
  refused,
  Simulation,
  subscribed,
  TOKEN,
  UNKNOWN,
} from '../support/simulation.ts';

describe('a checkout', () => {
  test('charges the first cycle and sets the anchor when there is no trial [D-05]', () => {
    const simulation = new Simulation('2026-01-30T10:00Z');
    simulation.runTo('2026-01-31T09:30Z');
    expect(simulation.pay()).toEqual({ kind: 'checkout', outcome: 'paid', errorCode: null });
    expect(simulation).toMatchObject({ nextAt: '2026-02-28T09:30', paidUntil: '2026-02-28T09:30' });
    expect([simulation.state.status, iso(simulation.state.anchorAt)]).toEqual([
      'ACTIVE',
      '2026-01-31T09:30',
    ]);
    simulation.runTo('2026-03-31T09:30Z');
    expect(simulation).toMatchObject({
      sent: '2026-01-31T09:30 1, 2026-02-28T09:30 2, 2026-03-31T09:30 3',
      news: 'intent.success, cycle_charged, active, intent.success, cycle_charged, intent.success, cycle_charged, ended',
      state: { status: 'ENDED', endReason: 'completed', cyclesCharged: 3 },
      // The paid period lasts to the date of a fourth cycle. The status ENDED does not shorten the period.
      paidUntil: '2026-04-30T09:30',
    });
    expect(simulation.sends.map((send) => send.amountMinor)).toEqual([1_999, 1_999, 1_999]);
    expectNothingFurther(simulation);
  });

  test('ends a subscription of one cycle when it is paid [D-§4]', () => {
    const simulation = subscribed('2026-05-01', { cycleCount: 1 });
    expect([simulation.path, simulation.state.endReason]).toEqual(['CREATED > ENDED', 'completed']);
    expectNothingFurther(simulation);
  });

  test('charges upfrontAmount instead of the amount for the first cycle only [IF-2.3]', () => {
    const simulation = subscribed('2026-05-01', { upfrontAmountMinor: 500 });
    simulation.runTo('2026-07-01');
    expect(simulation.sends.map((send) => send.amountMinor)).toEqual([500, 1_999, 1_999]);
    expectNothingFurther(simulation);
  });

  test('leaves the subscription CREATED and open to another card when its payment is declined [D-§4]', () => {
    const simulation = new Simulation('2026-05-01').gives(declined('insufficient_funds'));
    const errorCode = 'insufficient_funds';
    expect(simulation.pay()).toEqual({ kind: 'checkout', outcome: 'declined', errorCode });
    expect(simulation.state).toMatchObject({ status: 'CREATED', paymentMethodId: null });
    simulation.runTo('2026-05-01T06:00Z');
    expect(simulation.pay()).toMatchObject({ outcome: 'paid' });
    expect(simulation.sends.map((send) => send.key)).toEqual([
      'charge:in_101:1',
      'charge:in_101:2',
    ]);
    expect(simulation.news).toBe('intent.failed, intent.success, cycle_charged, active');
  });

  test('ends the subscription as checkout_expired when it is not paid in time [D-§4]', () => {
    const simulation = new Simulation('2026-05-01');
    simulation.runTo('2026-05-02');
    const state = { status: 'ENDED', endReason: 'checkout_expired' };
    expect(simulation).toMatchObject({ state, news: 'ended' });
    expect(simulation.command('completeCheckout', TOKEN)).toEqual({
      decision: refused('A subscription that is ENDED cannot be paid in its checkout.'),
      result: null,
    });
    expectNothingFurther(simulation);
  });

  test('does not expire while the outcome of its payment is unknown [D-40]', () => {
    const simulation = new Simulation('2026-05-01');
    simulation.runTo('2026-05-01T23:59:59Z');
    simulation.gives(UNKNOWN, UNKNOWN);
    expect(simulation.pay()).toBeNull();
    simulation.runTo('2026-05-02T00:00:05Z');
    expect(simulation.state.status).toBe('CREATED');
    simulation.runTo('2026-05-02T00:01Z');
    expect([simulation.state.status, simulation.sends.length]).toEqual(['ACTIVE', 1]);
  });
});

describe('a trial', () => {
  test('charges nothing and makes its end the first anchor [D-05]', () => {
    const simulation = new Simulation('2026-01-24T12:00Z', {
      trial: { interval: 'DAY', count: 7 },
    });
    simulation.pay();
    expect(simulation).toMatchObject({ sent: '', news: 'trialing', nextAt: '2026-01-31T12:00' });
    simulation.runTo('2026-12-31');
    expect(simulation).toMatchObject({
      sent: '2026-01-31T12:00 1, 2026-02-28T12:00 2, 2026-03-31T12:00 3',
      news: 'trialing, intent.success, cycle_charged, active, intent.success, cycle_charged, intent.success, cycle_charged, ended',
    });
    expectNothingFurther(simulation);
  });

  test('is followed by a charge of the amount valid on the day it ends [D-§4]', () => {
    const simulation = subscribed('2026-01-01', { trial: { interval: 'WEEK', count: 2 } });
    simulation.command('edit', { newAmountMinor: 2_500 });
    simulation.runTo('2026-01-15');
    expect([simulation.sent, simulation.sends[0]?.amountMinor]).toEqual(['2026-01-15 1', 2_500]);
  });

  test('leads to UNPAID when the charge at its end is declined [D-§4]', () => {
    const simulation = subscribed('2026-01-01', { trial: { interval: 'DAY', count: 1 } });
    simulation.gives(declined()).runTo('2026-01-02');
    expect(simulation.path).toBe('CREATED > TRIALING > UNPAID');
  });
});

describe('a declined cycle', () => {
  const unpaid = (code?: string): Simulation => {
    const simulation = subscribed('2026-01-31').gives(declined(code));
    simulation.runTo('2026-02-28');
    return simulation;
  };

  test('is retried 4, 8, 12 and 24 hours after the previous automatic attempt [D-30]', () => {
    const simulation = unpaid().gives(...declines(4));
    simulation.runTo('2026-12-31');
    expect(simulation).toMatchObject({
      sent:
        '2026-01-31 1, 2026-02-28 2, 2026-02-28T04:00 2 automatic_retry, 2026-02-28T12:00 2 automatic_retry, ' +
        '2026-03-01 2 automatic_retry, 2026-03-02 2 automatic_retry',
      state: { status: 'UNPAID', cyclesCharged: 1 },
      nextAt: null,
    });
    expectNothingFurther(simulation);
  });

  test('is followed, once it is paid, by the first date in the future, and the dates in between are not charged [D-§4]', () => {
    const simulation = unpaid().gives(...declines(4));
    simulation.runTo('2026-05-15');
    expect(simulation.retry().result).toEqual({
      kind: 'manualRetry',
      success: true,
      minManualRetryAt: at('2026-05-15T04:00Z'),
      status: 'ACTIVE',
      errorCode: null,
    });
    expect([simulation.nextAt, remainingCycleCount(simulation.state)]).toEqual(['2026-05-31', 1]);
    simulation.runTo('2026-06-30');
    expect(simulation.sends.at(-1)).toMatchObject({ cycleNumber: 3, amountMinor: 1_999 });
    expect(simulation.state.status).toBe('ENDED');
    expectNothingFurther(simulation);
  });

  test('is not retried after a hard decline until the payment method changes [D-30]', () => {
    const simulation = unpaid('stolen_card');
    simulation.runTo('2026-03-15');
    simulation.gives(declined()).newCard();
    // The new method is kept although its charge is declined, and restarts the retry plan.
    expect(simulation).toMatchObject({
      sent: '2026-01-31 1, 2026-02-28 2, 2026-03-15 2 new_method',
      state: { owed: { nextRetryAt: at('2026-03-15T04:00Z') } },
    });
    simulation.runTo('2026-03-15T04:00Z');
    expect(simulation.state.status).toBe('ACTIVE');
  });

  test('ends the subscription as retries_exhausted after the last retry when the plan says so [D-30]', () => {
    const plan = { delaysMs: [HOUR], afterExhausted: 'end' } as const;
    const simulation = subscribed('2026-01-01', {}, { ...plan, delaysMs: [HOUR] });
    simulation.gives(...declines(2)).runTo('2026-03-01');
    expect(simulation).toMatchObject({
      state: { status: 'ENDED', endReason: 'retries_exhausted' },
      news: 'intent.failed, unpaid, intent.failed, ended',
    });
    expectNothingFurther(simulation);
  });
});

describe('after an outage from 10 January to 15 May', () => {
  const afterOutage = (): Simulation => {
    const simulation = subscribed('2026-01-10T12:00Z', { cycleCount: 12 });
    simulation.now = at('2026-05-15');
    return simulation;
  };
  const dueOf = ({ sends }: Simulation) =>
    sends.map(({ dueAt, trigger }) => `${iso(dueAt)?.slice(5, 10)} ${trigger}`).join(', ');

  test('overdue cycles are charged in order, each with its own due date [D-05]', () => {
    const simulation = afterOutage();
    simulation.runTo('2026-05-15');
    expect(dueOf(simulation)).toBe(
      '01-10 checkout, 02-10 scheduled, 03-10 scheduled, 04-10 scheduled, 05-10 scheduled',
    );
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 5 });
  });

  test('overdue dates after a declined cycle are skipped and not billed later [D-05, D-§4]', () => {
    const simulation = afterOutage().gives({ kind: 'succeeded' }, declined());
    simulation.runTo('2026-05-15');
    expect(dueOf(simulation)).toBe('01-10 checkout, 02-10 scheduled, 03-10 scheduled');
    expect(simulation.state).toMatchObject({ status: 'UNPAID', cyclesCharged: 2 });

    // The retry four hours later pays March. The next charge is in June: April and May are not owed.
    simulation.runTo('2026-06-11');
    expect(dueOf(simulation)).toMatch(/03-10 scheduled, 03-10 automatic_retry, 06-10 scheduled$/);
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 4 });
  });
});

describe('the upcoming charges', () => {
  test('have dates, cycle numbers and amounts [D-§7]', () => {
    const simulation = new Simulation('2026-01-31', { cycleCount: 4 });
    expect(simulation.upcoming()).toBe('');
    simulation.pay();
    expect(simulation.upcoming(2)).toBe('2026-02-28 2 1999, 2026-03-31 3 1999');
    simulation.command('edit', { newAmountMinor: 300 });
    expect(simulation.upcoming()).toBe('2026-02-28 2 300, 2026-03-31 3 300, 2026-04-30 4 300');
  });

  test('leave out the dates that pass before an owed cycle is paid [D-§7, D-§4]', () => {
    const simulation = subscribed('2026-01-31', { cycleCount: 4 }).gives(...declines(5));
    simulation.runTo('2026-04-10');
    expect(simulation.upcoming()).toBe('null 2 1999, 2026-04-30 3 1999, 2026-05-31 4 1999');
    simulation.edit('2026-06-05');
    expect(simulation.upcoming()).toBe('2026-06-05 2 1999, 2026-07-05 3 1999, 2026-08-05 4 1999');
    simulation.runTo('2026-12-31');
    // The charges have the dates and cycles of the list.
    expect(simulation.sent).toMatch(/, 2026-06-05 2 automatic_retry, 2026-07-05 3, 2026-08-05 4$/);
  });
});
