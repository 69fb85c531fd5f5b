import { describe, expect, test } from 'vitest';
import { actorOfCause, causeText } from '../../domain/subscription/charge-cause.ts';
import { at, declined, DAY, HOUR, subscribed, TOKEN, UNKNOWN } from '../support/simulation.ts';
import type { Simulation } from '../support/simulation.ts';

/** Why an attempt was opened. Its outcome is unknown, so that it stays open. */

const JANUARY = '2027-01-10T12:00:00.000Z';

/** The cause of the open attempt, its text and its actor. */
function causeOf({ state }: Simulation) {
  const { openAttempt } = state;
  if (!openAttempt) throw new Error('no attempt is open');
  const { cause, trigger } = openAttempt;
  return { ...cause, text: causeText(cause, trigger), by: actorOfCause(cause) };
}

/** Unpaid since 10 February, because cycle 2 was declined. */
function unpaid(): Simulation {
  const simulation = subscribed(JANUARY).gives(declined(), UNKNOWN);
  simulation.runTo('2027-02-10T12:00:00Z');
  expect(simulation.state.status).toBe('UNPAID');
  return simulation;
}

describe('the cause of an attempt', () => {
  test('is the date of the calendar, with the anchor [D-57, D-05]', () => {
    const simulation = subscribed(JANUARY).gives(UNKNOWN);
    simulation.runTo('2027-02-10T12:00:00Z');
    expect(causeOf(simulation)).toEqual({
      rule: 'due_date',
      dueAt: at('2027-02-10T12:00Z'),
      anchorAt: at(JANUARY),
      index: 1,
      interval: 'MONTH',
      intervalCount: 1,
      text: 'its date had come: 2027-01-10T12:00:00.000Z + 1 month = 2027-02-10T12:00:00.000Z',
      by: 'schedule',
    });
  });

  test('is the retry of the plan, with the attempt from which its delay counts [D-57, D-30]', () => {
    const simulation = unpaid();
    simulation.runTo('2027-02-10T16:00:00Z');
    expect(causeOf(simulation)).toEqual({
      rule: 'retry_plan',
      plannedAt: at('2027-02-10T16:00Z'),
      retry: 1,
      delaysMs: [4 * HOUR, 8 * HOUR, 12 * HOUR, DAY],
      previousAt: at('2027-02-10T12:00Z'),
      text: 'retry 1 of 4 of the retry plan: 2027-02-10T12:00:00.000Z + 4 h = 2027-02-10T16:00:00.000Z',
      by: 'retry_plan',
    });
  });

  test('is the date that an edit has set, when it replaces the plan [D-57, D-15]', () => {
    const simulation = unpaid();
    simulation.edit('2027-02-20');
    simulation.runTo('2027-02-20');
    expect(causeOf(simulation)).toEqual({
      rule: 'set_date',
      plannedAt: at('2027-02-20'),
      text: 'its next attempt had been set to 2027-02-20T00:00:00.000Z',
      by: 'retry_plan',
    });
  });

  test('is the command of a manual retry, or the payer with another card [D-57, D-31, D-33]', () => {
    const retried = unpaid();
    retried.retry();
    expect(causeOf(retried)).toEqual({
      rule: 'command',
      commandId: 'cmd_2',
      actor: 'merchant',
      text: 'the merchant asked for it, by the command cmd_2',
      by: 'merchant',
    });
    const replaced = unpaid();
    replaced.command('replacePaymentMethod', TOKEN);
    expect(causeOf(replaced)).toEqual({
      rule: 'payer',
      text: 'the payer gave another payment method',
      by: 'payer',
    });
  });
});
