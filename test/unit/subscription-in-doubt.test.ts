import { describe, expect, test } from 'vitest';
import {
  declined,
  declines,
  expectNothingFurther,
  refused,
  subscribed,
  UNKNOWN,
} from '../support/simulation.ts';
import type { Simulation } from '../support/simulation.ts';

const VOID = { ...declined('processing_error'), isWithdrawn: true } as const;

/** Each test is a counterexample that the random sequences of `subscription-model.test.ts` found. */

/** Monthly from 10 January, on 10 February. `replies` are the gateway's answers from the second charge on. */
function from10January(...replies: Simulation['replies']): Simulation {
  const simulation = subscribed('2026-01-10').gives(...replies);
  simulation.sends.length = 0;
  simulation.runTo('2026-02-10');
  return simulation;
}

describe('an unpause while the outcome of a charge is unknown', () => {
  test('leads to a retry on its date, not before, when the charge is declined [D-§4]', () => {
    const simulation = from10January(UNKNOWN, declined());
    simulation.pause();
    simulation.unpause('2026-03-20');
    simulation.runTo('2026-02-11');
    expect(simulation).toMatchObject({ state: { status: 'UNPAID' }, nextAt: '2026-03-20' });
    simulation.runTo('2026-04-20');
    expect(simulation.sent).toBe('2026-02-10 2, 2026-03-20 2 automatic_retry, 2026-04-20 3');
    expect(simulation.state).toMatchObject({ status: 'ENDED', endReason: 'completed' });
    expectNothingFurther(simulation);
  });

  test('restarts the retry plan on its date [D-§4, D-30]', () => {
    const simulation = from10January(...declines(2), UNKNOWN, ...declines(2));
    simulation.runTo('2026-02-10T12:00Z');
    expect(simulation.state.owed).toMatchObject({ retriesUsed: 2, nextRetryAt: null });
    simulation.pause();
    simulation.unpause('2026-03-20');
    simulation.runTo('2026-03-20T04:00Z');
    expect(simulation.sent).toBe(
      '2026-02-10 2, 2026-02-10T04:00 2 automatic_retry, 2026-02-10T12:00 2 automatic_retry, ' +
        '2026-03-20 2 automatic_retry, 2026-03-20T04:00 2 automatic_retry',
    );
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  });

  test('leads to a retry on its date also when the charge is a manual retry [D-§4, D-31]', () => {
    const simulation = from10January(declined(), UNKNOWN, declined());
    simulation.retry();
    simulation.pause();
    simulation.unpause('2026-03-20');
    simulation.runTo('2026-04-20');
    expect(simulation.sent).toBe(
      '2026-02-10 2, 2026-02-10 2 manual_retry, 2026-03-20 2 automatic_retry, 2026-04-20 3',
    );
    expectNothingFurther(simulation);
  });

  test.each(['before', 'after'])(
    'keeps its retry plan when an edit moves its date %s the charge was found void [D-15, D-30, D-§4]',
    (moment) => {
      const simulation = from10January(UNKNOWN, VOID, ...declines(2));
      simulation.pause();
      simulation.unpause('2026-03-20');
      simulation.runTo(moment === 'before' ? '2026-02-10' : '2026-03-01');
      expect(simulation.state.status).toBe('ACTIVE');
      expect(simulation.edit('2026-03-25').decision).toEqual({ ok: true });
      simulation.runTo('2026-04-25');
      expect(simulation.sent).toBe(
        '2026-02-10 2, 2026-03-25 2 automatic_retry, 2026-03-25T04:00 2 automatic_retry, ' +
          '2026-03-25T12:00 2 automatic_retry, 2026-04-25 3',
      );
      expectNothingFurther(simulation);
    },
  );

  test('has its date among the upcoming charges also while the charge on this date is unknown [D-§4, D-§7]', () => {
    const simulation = from10January(declined(), UNKNOWN);
    simulation.pause();
    simulation.unpause('2026-03-20');
    expect(simulation.upcoming()).toBe('2026-03-20 2 1999, 2026-04-20 3 1999');
    simulation.runTo('2026-03-20');
    expect(simulation.state.openAttempt).not.toBeNull();
    expect(simulation.upcoming()).toBe('2026-03-20 2 1999, 2026-04-20 3 1999');
    simulation.runTo('2026-04-20');
    expect(simulation.sent).toBe('2026-02-10 2, 2026-03-20 2, 2026-04-20 3');
    expectNothingFurther(simulation);
  });

  test('is overridden by the date of a later edit [D-15]', () => {
    const simulation = from10January(UNKNOWN, declined());
    simulation.pause();
    simulation.unpause('2026-03-20');
    simulation.edit('2026-03-25');
    simulation.runTo('2026-04-25');
    expect(simulation.sent).toBe('2026-02-10 2, 2026-03-25 2 automatic_retry, 2026-04-25 3');
    expectNothingFurther(simulation);
  });
});

describe('an edited date while the outcome of a charge is unknown', () => {
  test('belongs to the owed cycle when the charge is declined [D-15]', () => {
    const simulation = from10January(UNKNOWN, declined());
    expect(simulation.edit('2026-03-05').decision).toEqual({ ok: true });
    expect(simulation.upcoming()).toBe('2026-02-10 2 1999, 2026-03-05 3 1999');
    simulation.runTo('2026-02-11');
    expect(simulation).toMatchObject({ state: { status: 'UNPAID' }, nextAt: '2026-03-05' });
    expect(simulation.upcoming()).toBe('2026-03-05 2 1999, 2026-04-05 3 1999');
    simulation.runTo('2026-04-05');
    expect(simulation.sent).toBe('2026-02-10 2, 2026-03-05 2 automatic_retry, 2026-04-05 3');
    expect(simulation.state).toMatchObject({ status: 'ENDED', endReason: 'completed' });
    expectNothingFurther(simulation);
  });

  test('is the last automatic attempt when the charge and its retry are declined [D-15, D-30]', () => {
    const simulation = from10January(UNKNOWN, declined(), declined());
    simulation.edit('2026-03-05');
    simulation.runTo('2026-03-06');
    expect(simulation.sent).toBe('2026-02-10 2, 2026-03-05 2 automatic_retry');
    expect(simulation.state).toMatchObject({ status: 'UNPAID', owed: { nextRetryAt: null } });
    expectNothingFurther(simulation);
  });

  test('is the next cycle’s when the charge is paid [D-15]', () => {
    const simulation = from10January(UNKNOWN);
    simulation.edit('2026-03-05', { interval: 'YEAR', intervalCount: 1 });
    simulation.runTo('2026-02-11');
    expect(simulation).toMatchObject({ state: { status: 'ACTIVE' }, nextAt: '2026-03-05' });
    expect(simulation.upcoming()).toBe('2026-03-05 3 1999');
    simulation.runTo('2026-03-05');
    expect(simulation.sent).toBe('2026-02-10 2, 2026-03-05 3');
    expectNothingFurther(simulation);
  });
});

describe('a new card while the outcome of a charge is unknown', () => {
  test('is charged on the date of an unpause, not before [D-§4, D-33]', () => {
    const simulation = from10January(UNKNOWN, declined());
    simulation.pause();
    simulation.unpause('2026-03-20');
    simulation.newCard();
    simulation.runTo('2026-04-20');
    expect(simulation.sent).toBe('2026-02-10 2, 2026-03-20 2 automatic_retry, 2026-04-20 3');
    expectNothingFurther(simulation);
  });

  test('is charged at once when no date was set [D-33]', () => {
    const simulation = from10January(UNKNOWN, declined());
    simulation.newCard();
    simulation.runTo('2026-03-10');
    expect(simulation.sent).toMatch(
      /^2026-02-10 2, 2026-02-10T00:0[^ ]+ 2 automatic_retry, 2026-03-10 3$/,
    );
    expectNothingFurther(simulation);
  });
});

describe('a retry plan that a hard decline stopped', () => {
  test('is replaced by an edited date once the payment method has changed [D-15, D-30]', () => {
    const simulation = from10January(declined('stolen_card'), UNKNOWN, declined());
    simulation.newCard();
    expect(simulation.state.openAttempt).toMatchObject({ trigger: 'new_method', lookups: 1 });
    simulation.edit('2026-03-20');
    simulation.runTo('2026-04-20');
    expect(simulation.sent).toBe(
      '2026-02-10 2, 2026-02-10 2 new_method, 2026-03-20 2 automatic_retry, 2026-04-20 3',
    );
    expectNothingFurther(simulation);
  });

  test('stays stopped after an unpause, until the payment method changes [D-30, D-§4]', () => {
    const simulation = from10January(declined('stolen_card'));
    simulation.pause();
    simulation.unpause('2026-03-20');
    simulation.runTo('2026-04-01');
    expect(simulation).toMatchObject({
      sent: '2026-02-10 2',
      state: { status: 'UNPAID', owed: { retriesStopped: true, nextRetryAt: null } },
    });
    simulation.gives(declined()).newCard();
    simulation.runTo('2026-04-01T04:00Z');
    expect(simulation).toMatchObject({
      sent: '2026-02-10 2, 2026-04-01 2 new_method, 2026-04-01T04:00 2 automatic_retry',
      state: { status: 'ACTIVE' },
    });
  });
});

describe('a retry that succeeds after its outcome was unknown', () => {
  /**
   * Monthly from 31 January. Cycle 2 is declined from 28 February on. Its manual retry on 10 April has an
   * unknown outcome. The next look-up finds that the retry succeeded, unless the test adds other answers.
   */
  function retriedInApril(): Simulation {
    const simulation = subscribed('2026-01-31').gives(...declines(5));
    simulation.runTo('2026-04-10');
    simulation.gives(UNKNOWN).retry();
    expect(simulation.state.openAttempt).toMatchObject({ trigger: 'manual_retry', lookups: 1 });
    return simulation;
  }

  test.each([
    ['no command follows', 'ACTIVE', () => undefined],
    [
      'the subscription is cancelled before the outcome is known',
      'ENDED',
      (simulation: Simulation) => simulation.cancel(),
    ],
    [
      'the subscription is paused before the outcome is known',
      'PAUSED',
      (simulation: Simulation) => simulation.pause(),
    ],
  ])('pays the period until 30 April when %s [D-34, D-§4]', (_name, status, command) => {
    const simulation = retriedInApril();
    command(simulation);
    simulation.runTo('2026-04-11');
    expect(simulation).toMatchObject({
      state: { status, cyclesCharged: 2 },
      paidUntil: '2026-04-30',
    });
    if (status !== 'ACTIVE') expectNothingFurther(simulation);
  });

  test('leaves the date of an unpause to the next cycle, even if the retry succeeds after that date [D-§4]', () => {
    const simulation = retriedInApril().gives(...Array.from({ length: 20 }, () => UNKNOWN));
    simulation.pause();
    simulation.unpause('2026-04-10T01:00Z');
    simulation.runTo('2026-04-12');
    expect(simulation.state).toMatchObject({ status: 'ENDED', cyclesCharged: 3 });
    expect(simulation.sent).toMatch(/, 2026-04-10 2 manual_retry, 2026-04-1[^ ]+ 3$/);
    expect(simulation.sends.at(-1)?.dueAt).toBe(Date.parse('2026-04-10T01:00Z'));
  });
});

describe('an edited date after a decline that stops the automatic retries', () => {
  test('is refused with the decline code until the payment method has changed [D-15, D-30]', () => {
    const simulation = from10January(declined('lost_card'), declined());
    const before = structuredClone(simulation.state);
    expect(simulation.edit('2026-03-20', { newAmountMinor: 2_500 }).decision).toEqual(
      refused(
        'The payment method was declined (lost_card) and is not charged again. The payer has to replace it.',
      ),
    );
    expect(simulation.state).toEqual(before);
    expect(simulation.command('edit', { newAmountMinor: 2_500 }).decision).toEqual({ ok: true });
    simulation.newCard();
    expect(simulation.edit('2026-03-20').decision).toEqual({ ok: true });
    simulation.runTo('2026-03-20');
    expect(simulation.sent).toBe(
      '2026-02-10 2, 2026-02-10 2 new_method, 2026-03-20 2 automatic_retry',
    );
  });

  test('is refused when the decline is authentication_required, which is not hard [D-15, D-30]', () => {
    const simulation = from10January(declined('authentication_required'));
    expect(simulation.edit('2026-03-20').decision).toMatchObject(
      refused(expect.stringContaining('(authentication_required)') as string),
    );
  });
});
