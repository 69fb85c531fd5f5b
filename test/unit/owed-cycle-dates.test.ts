import { describe, expect, test } from 'vitest';
import { at, declined, expectNothingFurther, subscribed, UNKNOWN } from '../support/simulation.ts';
import type { Simulation } from '../support/simulation.ts';

/** A date that was meant for the owed cycle is not the due date of the next cycle, too. */

const EDITED = '2027-02-20T12:00Z';

/** January is paid, and the charge of 15 February is declined. */
function declinedInFebruary(code = 'insufficient_funds'): Simulation {
  const simulation = subscribed('2027-01-15T12:00Z').gives(declined(code));
  simulation.runTo('2027-02-15T12:00Z');
  expect(simulation.sent).toBe('2027-01-15T12:00 1, 2027-02-15T12:00 2');
  simulation.sends.length = 0;
  return simulation;
}

describe('an edited date in UNPAID', () => {
  test.each([
    ['a manual retry', 'manual_retry', (simulation: Simulation) => simulation.retry()],
    ['a new card', 'new_method', (simulation: Simulation) => simulation.newCard()],
  ])(
    'belongs to the owed cycle also when %s pays the cycle before this date [D-15]',
    (_name, trigger, retry) => {
      const simulation = declinedInFebruary();
      simulation.edit(EDITED);
      simulation.runTo('2027-02-20T11:00Z');
      retry(simulation);
      const state = { status: 'ACTIVE', cyclesCharged: 2 };
      expect(simulation).toMatchObject({ state, paidUntil: '2027-03-20T12:00' });
      simulation.runTo('2027-03-20T12:00Z');
      expect(simulation.sent).toBe(`2027-02-20T11:00 2 ${trigger}, 2027-03-20T12:00 3`);
      expect(simulation.state.status).toBe('ENDED');
      expectNothingFurther(simulation);
    },
  );

  test.each([
    ['a cancellation', (simulation: Simulation) => simulation.cancel(), 'ENDED'],
    ['a pause', (simulation: Simulation) => simulation.pause(), 'PAUSED'],
  ])(
    'belongs to the owed cycle also when %s comes before its payment is known [D-15, D-34]',
    (_name, command, status) => {
      const simulation = declinedInFebruary().gives(UNKNOWN);
      simulation.edit(EDITED);
      simulation.runTo('2027-02-16T12:00Z');
      simulation.retry();
      command(simulation);
      simulation.runTo('2027-02-16T13:00Z');
      const state = { status, cyclesCharged: 2 };
      expect(simulation).toMatchObject({ state, paidUntil: '2027-03-20T12:00' });
      expectNothingFurther(simulation);
    },
  );

  test('is followed by the date of the edited interval [D-15]', () => {
    const simulation = declinedInFebruary();
    simulation.edit(EDITED, { interval: 'YEAR', intervalCount: 1, newAmountMinor: 19_900 });
    simulation.runTo('2027-02-19T12:00Z');
    simulation.retry();
    simulation.runTo('2028-02-20T12:00Z');
    expect(simulation.sent).toBe('2027-02-19T12:00 2 manual_retry, 2028-02-20T12:00 3');
    expect(simulation.sends.map(({ amountMinor }) => amountMinor)).toEqual([1_999, 19_900]);
    expectNothingFurther(simulation);
  });
});

describe('a hard-declined cycle', () => {
  test('is not charged again after a pause and an unpause until the card changes [D-30, D-§4]', () => {
    const simulation = declinedInFebruary('lost_card');
    simulation.runTo('2027-02-16T12:00Z');
    simulation.pause();
    expect(simulation.unpause(EDITED).decision).toEqual({ ok: true });
    expect(simulation.state).toMatchObject({ status: 'UNPAID', anchorAt: at(EDITED) });
    simulation.runTo('2027-03-25T12:00Z');
    expect(simulation.sent).toBe('');

    simulation.newCard();
    simulation.runTo('2027-04-20T12:00Z');
    expect(simulation.sent).toBe('2027-03-25T12:00 2 new_method, 2027-04-20T12:00 3');
    expect(simulation.path).toBe('CREATED > ACTIVE > UNPAID > PAUSED > UNPAID > ACTIVE > ENDED');
    expectNothingFurther(simulation);
  });

  test('is not charged again when its pause ends by itself [D-30, D-§4]', () => {
    const simulation = declinedInFebruary('lost_card');
    simulation.runTo('2027-02-16T12:00Z');
    simulation.pause(EDITED);
    simulation.runTo('2027-02-21T12:00Z');
    expect(simulation.state).toMatchObject({ status: 'UNPAID', anchorAt: at(EDITED) });
    expect(simulation.sent).toBe('');
    expectNothingFurther(simulation);
  });
});
