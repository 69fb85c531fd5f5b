import { describe, expect, test } from 'vitest';
import { expectNothingFurther, Simulation } from '../support/simulation.ts';

/** A date that was meant for the owed cycle is not the due date of the next cycle, too. */

const EDITED_AT = Date.parse('2027-02-20T12:00:00Z');
const FUNDS = { kind: 'declined', code: 'insufficient_funds' } as const;
const LOST = { kind: 'declined', code: 'lost_card' } as const;
const NEW_CARD = { paymentToken: 'ptk_new', checkoutSessionId: 'cs_new' };

/** January is paid, and the charge of 15 February is declined. */
function declinedInFebruary(decline: typeof FUNDS | typeof LOST = FUNDS): Simulation {
  const simulation = new Simulation('2027-01-15T12:00:00Z', { cycleCount: 3 });
  simulation.pay();
  simulation.replies.push(decline);
  simulation.runTo('2027-02-15T12:00:00Z');
  expect(simulation.state.status).toBe('UNPAID');
  return simulation;
}

const sends = (simulation: Simulation) =>
  simulation.sends.map(
    ({ cycleNumber, at }) => `${cycleNumber} ${new Date(at).toISOString().slice(0, 16)}`,
  );

describe('an edited date in UNPAID', () => {
  test.each([
    ['a manual retry', (simulation: Simulation) => simulation.command('manualRetry', {})],
    [
      'a new card',
      (simulation: Simulation) => simulation.command('replacePaymentMethod', NEW_CARD),
    ],
  ])(
    'belongs to the owed cycle also when %s pays the cycle before this date [D-15]',
    (_name, retry) => {
      const simulation = declinedInFebruary();
      simulation.command('edit', { newNextPaymentAt: EDITED_AT });
      simulation.runTo('2027-02-20T11:00:00Z');
      retry(simulation);
      expect(simulation.state).toMatchObject({
        status: 'ACTIVE',
        cyclesCharged: 2,
        currentPeriodEndAt: Date.parse('2027-03-20T12:00:00Z'),
      });
      simulation.runTo('2027-03-20T12:00:00Z');
      expect(sends(simulation)).toEqual([
        '1 2027-01-15T12:00',
        '2 2027-02-15T12:00',
        '2 2027-02-20T11:00',
        '3 2027-03-20T12:00',
      ]);
      expect(simulation.state.status).toBe('ENDED');
      expectNothingFurther(simulation);
    },
  );

  test('is followed by the date of the edited interval [D-15]', () => {
    const simulation = declinedInFebruary();
    simulation.command('edit', {
      newNextPaymentAt: EDITED_AT,
      interval: 'YEAR',
      intervalCount: 1,
      newAmountMinor: 19_900,
    });
    simulation.runTo('2027-02-19T12:00:00Z');
    simulation.command('manualRetry', {});
    simulation.runTo('2028-02-20T12:00:00Z');
    expect(
      simulation.sends.map(({ at, amountMinor }) => [new Date(at).toISOString(), amountMinor]),
    ).toEqual([
      ['2027-01-15T12:00:00.000Z', 1_999],
      ['2027-02-15T12:00:00.000Z', 1_999],
      ['2027-02-19T12:00:00.000Z', 1_999],
      ['2028-02-20T12:00:00.000Z', 19_900],
    ]);
    expectNothingFurther(simulation);
  });
});

describe('a hard-declined cycle', () => {
  test('is not charged again after a pause and an unpause until the card changes [D-30, D-§4]', () => {
    const simulation = declinedInFebruary(LOST);
    simulation.runTo('2027-02-16T12:00:00Z');
    simulation.command('pause', {});
    const { decision } = simulation.command('unpause', { newNextPaymentAt: EDITED_AT });
    expect(decision).toEqual({ ok: true });
    expect(simulation.state).toMatchObject({ status: 'UNPAID', anchorAt: EDITED_AT });
    simulation.runTo('2027-03-25T12:00:00Z');
    expect(sends(simulation)).toEqual(['1 2027-01-15T12:00', '2 2027-02-15T12:00']);

    simulation.command('replacePaymentMethod', NEW_CARD);
    simulation.runTo('2027-04-20T12:00:00Z');
    expect(sends(simulation).slice(2)).toEqual(['2 2027-03-25T12:00', '3 2027-04-20T12:00']);
    expect(simulation.statuses).toEqual([
      'CREATED',
      'ACTIVE',
      'UNPAID',
      'PAUSED',
      'UNPAID',
      'ACTIVE',
      'ENDED',
    ]);
    expectNothingFurther(simulation);
  });

  test('is not charged again when its pause ends by itself [D-30, D-§4]', () => {
    const simulation = declinedInFebruary(LOST);
    simulation.runTo('2027-02-16T12:00:00Z');
    simulation.command('pause', { resumeAt: EDITED_AT });
    simulation.runTo('2027-02-21T12:00:00Z');
    expect(simulation.state).toMatchObject({ status: 'UNPAID', anchorAt: EDITED_AT });
    expect(sends(simulation)).toEqual(['1 2027-01-15T12:00', '2 2027-02-15T12:00']);
    expectNothingFurther(simulation);
  });
});
