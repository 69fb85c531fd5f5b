import { describe, expect, test } from 'vitest';
import { wakeAt } from '../../domain/subscription/decide.ts';
import {
  declined,
  declines,
  expectNothingFurther,
  HOUR,
  iso,
  refused,
  Simulation,
  subscribed,
  UNKNOWN,
} from '../support/simulation.ts';

describe('a manual retry', () => {
  const unpaid = (): Simulation => {
    const simulation = subscribed('2026-01-01').gives(declined());
    simulation.runTo('2026-02-01T01:00Z');
    return simulation;
  };
  const wakes = ({ state }: Simulation) => [iso(state.cooldownUntilAt), iso(wakeAt(state))];

  test('causes no wake-up at the end of its cooldown [D-31]', () => {
    const simulation = unpaid();
    expect(simulation.retry().result).toMatchObject({ success: true });
    expect(wakes(simulation)).toEqual(['2026-02-01T05:00', '2026-03-01']);
    const stopped = unpaid().gives(declined('stolen_card'));
    stopped.retry();
    expect(wakes(stopped)).toEqual(['2026-02-01T05:00', null]);
  });

  test('is refused until 4 h after the last one, with that instant in the refusal [D-31]', () => {
    const simulation = unpaid().gives(...declines(3));
    const failed = { success: false, status: 'UNPAID', errorCode: 'card_declined' };
    expect(simulation.retry().result).toMatchObject(failed);
    simulation.runTo('2026-02-01T04:59:59.999Z');
    const message = 'Another manual retry is possible from 2026-02-01T05:00:00.000Z.';
    const retryAt = Date.UTC(2026, 1, 1, 5);
    expect(simulation.retry().decision).toEqual({ ...refused(message, 'bad_request'), retryAt });
    simulation.runTo('2026-02-01T05:00Z');
    expect(simulation.retry().decision).toEqual({ ok: true });
    // The automatic retry at 04:00 ignores the cooldown and does not extend it.
    expect(simulation.sent).toBe(
      '2026-01-01 1, 2026-02-01 2, 2026-02-01T01:00 2 manual_retry, ' +
        '2026-02-01T04:00 2 automatic_retry, 2026-02-01T05:00 2 manual_retry',
    );
  });

  test('is refused in every status but UNPAID [IF-3]', () => {
    const simulation = new Simulation('2026-01-01', { trial: { interval: 'DAY', count: 1 } });
    const steps = [
      () => undefined,
      () => simulation.pay(),
      () => simulation.runTo('2026-01-02'),
      () => simulation.pause(),
      () => simulation.cancel(),
    ];
    for (const step of steps) {
      step();
      const code = 'operation_not_allowed';
      expect(simulation.retry().decision).toMatchObject({ ok: false, code });
    }
    expect(simulation.path).toBe('CREATED > TRIALING > ACTIVE > PAUSED > ENDED');
  });

  test('returns ENDED and no date for another retry when it pays the last cycle [D-10a]', () => {
    const simulation = subscribed('2026-01-01', { cycleCount: 2 }).gives(declined());
    simulation.runTo('2026-02-01');
    expect(simulation.retry().result).toEqual({
      kind: 'manualRetry',
      success: true,
      minManualRetryAt: null,
      status: 'ENDED',
      errorCode: null,
    });
    expectNothingFurther(simulation);
  });

  test('is refused while the outcome of a payment is unknown [D-31]', () => {
    const simulation = unpaid().gives(UNKNOWN, declined());
    expect(simulation.retry()).toEqual({ decision: { ok: true }, result: null });
    expect(simulation.retry().decision).toMatchObject({ code: 'payment_outcome_pending' });
    simulation.runTo('2026-02-01T01:00:10Z');
    expect(simulation.state.openAttempt).toBeNull();
    expect(simulation.sends.filter((send) => send.cycleNumber === 2)).toHaveLength(2);
  });
});

describe('an edit', () => {
  test('applies a new amount from the next intent on, not to an owed cycle [D-15]', () => {
    const simulation = subscribed('2026-01-01').gives(declined());
    simulation.runTo('2026-02-01');
    simulation.command('edit', { newAmountMinor: 9_900 });
    simulation.runTo('2026-03-01');
    expect(simulation.sends.map((send) => send.amountMinor)).toEqual([1_999, 1_999, 1_999, 9_900]);
  });

  test('applies a new date to the next payment and shifts all later ones [D-15, IF-4.6, D-05]', () => {
    const simulation = subscribed('2026-01-10');
    simulation.edit('2026-02-28T06:00Z');
    simulation.runTo('2026-12-01');
    expect(simulation.sent).toBe('2026-01-10 1, 2026-02-28T06:00 2, 2026-03-28T06:00 3');
  });

  test('replaces the rest of the retry plan by a new date when the status is UNPAID [D-15]', () => {
    const simulation = subscribed('2026-01-10').gives(declined());
    simulation.runTo('2026-02-10');
    simulation.edit('2026-02-20');
    simulation.runTo('2026-12-01');
    expect(simulation.sent).toBe(
      '2026-01-10 1, 2026-02-10 2, 2026-02-20 2 automatic_retry, 2026-03-20 3',
    );
  });

  test.each([
    [{ newNextPaymentAt: 0 }, 'newNextPaymentDate must lie in the future.'],
    [{ newCycleCount: 1 }, 'newCycleCount must exceed the 1 cycles already charged'],
  ])('is refused with %j: %s [D-15, IF-4.6, IF-8, D-03]', (fields, message) => {
    const { decision } = subscribed('2026-01-10').command('edit', fields);
    expect(decision).toEqual(refused(message, 'bad_request'));
  });

  test.each([
    [{ newAmountMinor: 9_000_000_000_000 }, { amountMinor: 200_000_000, cycleCount: 1_200 }],
    [{ newCycleCount: 1_200 }, { amountMinor: 9_000_000_000_000, cycleCount: 1_000 }],
  ])('is refused with %j if the sum of all cycles is then unsafe [D-01]', (fields, terms) => {
    const simulation = subscribed('2026-01-10', { currency: 'IRR', interval: 'DAY', ...terms });
    const field = 'newCycleCount' in fields ? 'newCycleCount' : 'newAmount';
    const message = `${field} must make a sum of all cycles of at most 9007199254740991`;
    expect(simulation.command('edit', fields).decision).toEqual(refused(message, 'bad_request'));
  });
});

describe('while the outcome of a payment is unknown', () => {
  /** The charge of cycle 2 is sent on 10 February, and its outcome is unknown. */
  const withUnknownCharge = (): Simulation => {
    const simulation = subscribed('2026-01-10', { cycleCount: 6 }).gives(UNKNOWN);
    simulation.runTo('2026-02-10');
    return simulation;
  };

  test('an edited date becomes the date of the next cycle, not of the cycle after the next [D-15]', () => {
    const simulation = withUnknownCharge();
    simulation.edit('2026-03-05');
    simulation.runTo('2026-02-11');
    expect(simulation).toMatchObject({
      state: { status: 'ACTIVE', cyclesCharged: 2 },
      nextAt: '2026-03-05',
      paidUntil: '2026-03-10',
    });
    simulation.runTo('2026-04-05');
    expect(simulation.sent).toBe('2026-01-10 1, 2026-02-10 2, 2026-03-05 3, 2026-04-05 4');
  });

  test('an unpause charges exactly once at its date [D-§4]', () => {
    const simulation = withUnknownCharge();
    simulation.pause();
    simulation.unpause('2026-03-20');
    simulation.runTo('2026-04-20');
    expect(simulation.sent).toBe('2026-01-10 1, 2026-02-10 2, 2026-03-20 3, 2026-04-20 4');
  });

  test('a date edited during an open retry stays valid when that retry is declined [D-15]', () => {
    const simulation = subscribed('2026-01-10', {}, { delaysMs: [HOUR], afterExhausted: 'end' });
    simulation.gives(declined(), UNKNOWN, declined()).runTo('2026-02-10T01:00:05Z');
    expect(simulation.state.openAttempt).not.toBeNull();
    simulation.edit('2026-02-20');
    simulation.runTo('2026-02-20');
    expect(simulation.state.status).toBe('ACTIVE');
    expect(simulation.sent).toBe(
      '2026-01-10 1, 2026-02-10 2, 2026-02-10T01:00 2 automatic_retry, 2026-02-20 2 automatic_retry',
    );
  });

  test('a new payment method is charged as soon as the old one is declined [D-30, D-33]', () => {
    const simulation = withUnknownCharge().gives(declined('stolen_card'));
    simulation.newCard();
    simulation.runTo('2026-02-11');
    expect(simulation).toMatchObject({
      path: 'CREATED > ACTIVE > UNPAID > ACTIVE',
      sent: '2026-01-10 1, 2026-02-10 2, 2026-02-10T00:00:10 2 automatic_retry',
      nextAt: '2026-03-10',
    });
  });
});

describe('pause and unpause', () => {
  test('charge a card of the pause at the new date, once, after a final decline [D-§4, D-33]', () => {
    const simulation = subscribed('2026-01-10').gives(declined('stolen_card'));
    simulation.runTo('2026-02-10T01:00Z');
    simulation.pause();
    expect(simulation.newCard().result).toMatchObject({ outcome: 'saved' });
    simulation.runTo('2026-06-01');
    simulation.unpause('2026-06-05');
    simulation.runTo('2026-07-05');
    expect(simulation).toMatchObject({
      sent: '2026-01-10 1, 2026-02-10 2, 2026-06-05 2, 2026-07-05 3',
      path: 'CREATED > ACTIVE > UNPAID > PAUSED > ACTIVE > ENDED',
    });
    expectNothingFurther(simulation);
  });

  test('charge a card of the pause at the new date when the old card is declined late [D-§4, D-33]', () => {
    const simulation = subscribed('2026-01-10').gives(UNKNOWN, declined('stolen_card'));
    simulation.runTo('2026-02-10');
    simulation.pause();
    simulation.newCard();
    simulation.runTo('2026-06-01');
    simulation.unpause('2026-06-05');
    simulation.runTo('2026-06-06');
    expect(simulation.sent).toBe('2026-01-10 1, 2026-02-10 2, 2026-06-05 2');
  });

  test('cause no charge during the pause and exactly one at the new date [D-§4]', () => {
    const simulation = subscribed('2026-01-10').gives(declined());
    simulation.runTo('2026-02-10T01:00Z');
    simulation.pause();
    simulation.runTo('2026-06-01');
    expect(simulation.sent).toBe('2026-01-10 1, 2026-02-10 2');
    simulation.unpause('2026-06-05');
    simulation.runTo('2026-07-05');
    expect(simulation).toMatchObject({
      sent: '2026-01-10 1, 2026-02-10 2, 2026-06-05 2, 2026-07-05 3',
      path: 'CREATED > ACTIVE > UNPAID > PAUSED > ACTIVE > ENDED',
    });
    expectNothingFurther(simulation);
  });
});

test('a cancel ends the subscription at once but still records the outcome of a charge that was sent before [D-§4]', () => {
  const simulation = subscribed('2026-01-10').gives(UNKNOWN);
  simulation.runTo('2026-02-10');
  simulation.cancel();
  expect(simulation.state).toMatchObject({ status: 'ENDED', cyclesCharged: 1 });
  simulation.runTo('2026-02-10T01:00Z');
  expect(simulation).toMatchObject({
    state: { status: 'ENDED', endReason: 'cancelled', cyclesCharged: 2 },
    news: 'ended, intent.success, cycle_charged',
  });
  expectNothingFurther(simulation);
});
