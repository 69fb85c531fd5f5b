import { expect, test } from 'vitest';
import { remainingCycleCount } from '../../domain/subscription/state.ts';
import { wakeAt } from '../../domain/subscription/decide.ts';
import { jitterOf } from '../../domain/delays.ts';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import { at, declined, HOUR, iso, subscribed } from '../support/simulation.ts';
import type { Simulation } from '../support/simulation.ts';

const MINUTE = 60_000;

/** Monthly from 31 January, 12:00, with a jitter of 7 min. */
const jittered = (terms = {}): Simulation =>
  subscribed('2026-01-31T12:00Z', terms, DEFAULT_RETRY_PLAN, 7 * MINUTE);

test('the jitter delays the charge of a renewal and changes no due date [D-05]', () => {
  const simulation = jittered();
  simulation.runTo('2026-02-28T12:06:59.999Z');
  expect(simulation).toMatchObject({ sent: '2026-01-31T12:00 1', nextAt: '2026-02-28T12:00' });
  expect(iso(wakeAt(simulation.state))).toBe('2026-02-28T12:07');

  simulation.runTo('2026-02-28T12:07Z');
  expect(simulation.paidUntil).toBe('2026-03-31T12:00');
  expect(simulation.upcoming()).toBe('2026-03-31T12:00 3 1999');
  simulation.runTo('2027-01-01');
  expect(simulation).toMatchObject({
    sent: '2026-01-31T12:00 1, 2026-02-28T12:07 2, 2026-03-31T12:07 3',
    state: { status: 'ENDED', anchorAt: at('2026-01-31T12:00Z') },
    paidUntil: '2026-04-30T12:00',
  });
});

test('the jitter delays the charge after a trial, an edit or an unpause [D-§4]', () => {
  const simulation = jittered({ trial: { interval: 'DAY', count: 3 }, cycleCount: 4 });
  simulation.runTo('2026-02-10');
  simulation.edit('2026-02-20');
  simulation.runTo('2026-02-21');
  simulation.pause();
  simulation.unpause('2026-05-01');
  simulation.runTo('2026-05-02');
  expect(simulation.sent).toBe('2026-02-03T12:07 1, 2026-02-20T00:07 2, 2026-05-01T00:07 3');
  expect(remainingCycleCount(simulation.state)).toBe(1);
});

test('a retry is due 4 h after the previous attempt, without a second jitter [D-30]', () => {
  const simulation = jittered().gives(declined());
  simulation.runTo('2026-02-28T23:00Z');
  expect(simulation).toMatchObject({
    sent: '2026-01-31T12:00 1, 2026-02-28T12:07 2, 2026-02-28T16:07 2 automatic_retry',
    nextAt: '2026-03-31T12:00',
  });
});

test.each(['pause', 'cancel'] as const)(
  'no charge is made when a %s comes between due date and charge [D-§4]',
  (command) => {
    const simulation = jittered();
    simulation.runTo('2026-02-28T12:03Z');
    simulation[command]();
    simulation.runTo('2026-03-15');
    expect(simulation.sends).toHaveLength(1);
  },
);

test('the jitter of an id is always the same, and 10,000 ids spread evenly over the window [D-23]', () => {
  expect(jitterOf('sub_1', 0)).toBe(0);
  const once = jitterOf('sub_01K3ZQ7WJ0abcdefghij', 30 * MINUTE);
  expect(jitterOf('sub_01K3ZQ7WJ0abcdefghij', 30 * MINUTE)).toBe(once);

  const shares = Array.from({ length: 10_000 }, (_, n) => jitterOf(`sub_01K3ZQ7WJ0${n}`, HOUR));
  expect(shares.filter((share) => share < 0 || share > HOUR)).toEqual([]);
  const inTenths = Array.from(
    { length: 10 },
    (_, tenth) => shares.filter((share) => Math.floor((share * 10) / (HOUR + 1)) === tenth).length,
  );
  // 1,000 are expected in each tenth. Chance explains a difference of up to 200.
  expect(inTenths.filter((count) => count < 800 || count > 1_200)).toEqual([]);
});
