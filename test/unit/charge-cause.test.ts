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
      setBy: { actor: 'merchant', commandId: 'cmd_2' },
      text: 'the merchant had set its next attempt to 2027-02-20T00:00:00.000Z, by the command cmd_2',
      by: 'merchant',
    });
    simulation.runTo('2027-02-21');
    expect(simulation.log.at(-1)).toMatchObject({
      what: 'cycle 2 paid, 19.99 USD',
      why: 'the merchant had set its date (attempt 2)',
      actor: 'merchant',
    });
  });

  test('is the payer, when another card was given during an attempt [D-57, D-33]', () => {
    const simulation = subscribed(JANUARY).gives(UNKNOWN, declined(), UNKNOWN);
    simulation.runTo('2027-02-10T12:00:00Z');
    simulation.newCard();
    simulation.runTo('2027-02-10T12:00:10Z');
    expect(causeOf(simulation)).toEqual({
      rule: 'set_date',
      plannedAt: at('2027-02-10T12:00Z'),
      setBy: { actor: 'payer' },
      text: 'the payer gave another payment method; its next attempt was set to 2027-02-10T12:00:00.000Z',
      by: 'payer',
    });
    simulation.runTo('2027-02-11');
    expect(simulation.log.at(-1)).toMatchObject({
      why: 'the payer gave another payment method (attempt 2)',
      actor: 'payer',
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
