import { expect, test } from 'vitest';
import { nextPaymentAt, remainingCycleCount } from '../../domain/subscription/state.ts';
import { wakeAt } from '../../domain/subscription/decide.ts';
import { jitterOf } from '../../domain/subscription/jitter.ts';
import { upcomingCharges } from '../../domain/subscription/upcoming.ts';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import { HOUR, Simulation } from '../support/simulation.ts';

const MINUTE = 60_000;
const at = (iso: string): number => Date.parse(iso);
const iso = (instants: readonly { at: number }[]) =>
  instants.map((one) => new Date(one.at).toISOString());

function subscribed(terms = {}): Simulation {
  const simulation = new Simulation('2026-01-31T12:00:00Z', terms, DEFAULT_RETRY_PLAN, 7 * MINUTE);
  simulation.pay();
  return simulation;
}

test('the jitter delays the charge of a renewal and changes no due date [D-05]', () => {
  const simulation = subscribed();
  simulation.runTo('2026-02-28T12:06:59.999Z');
  expect(iso(simulation.sends)).toEqual(['2026-01-31T12:00:00.000Z']);
  expect(nextPaymentAt(simulation.state)).toBe(at('2026-02-28T12:00:00Z'));
  expect(wakeAt(simulation.state)).toBe(at('2026-02-28T12:07:00Z'));

  simulation.runTo('2026-02-28T12:07:00Z');
  expect(simulation.state.currentPeriodEndAt).toBe(at('2026-03-31T12:00:00Z'));
  expect(upcomingCharges(simulation.state, 3, simulation.now).map((charge) => charge.at)).toEqual([
    at('2026-03-31T12:00:00Z'),
  ]);
  simulation.runTo('2027-01-01T00:00:00Z');
  expect(iso(simulation.sends)).toEqual([
    '2026-01-31T12:00:00.000Z',
    '2026-02-28T12:07:00.000Z',
    '2026-03-31T12:07:00.000Z',
  ]);
  expect(simulation.state).toMatchObject({
    status: 'ENDED',
    anchorAt: at('2026-01-31T12:00:00Z'),
    currentPeriodEndAt: at('2026-04-30T12:00:00Z'),
  });
});

test('the jitter delays the charge after a trial, an edit or an unpause [D-§4]', () => {
  const simulation = subscribed({ trial: { interval: 'DAY', count: 3 }, cycleCount: 4 });
  simulation.runTo('2026-02-10T00:00:00Z');
  simulation.command('edit', { newNextPaymentAt: at('2026-02-20T00:00:00Z') });
  simulation.runTo('2026-02-21T00:00:00Z');
  simulation.command('pause', {});
  simulation.command('unpause', { newNextPaymentAt: at('2026-05-01T00:00:00Z') });
  simulation.runTo('2026-05-02T00:00:00Z');
  expect(iso(simulation.sends)).toEqual([
    '2026-02-03T12:07:00.000Z',
    '2026-02-20T00:07:00.000Z',
    '2026-05-01T00:07:00.000Z',
  ]);
  expect(remainingCycleCount(simulation.state)).toBe(1);
});

test('a retry is due 4 h after the previous attempt, without a second jitter [D-30]', () => {
  const simulation = subscribed();
  simulation.replies.push({ kind: 'declined', code: 'card_declined' });
  simulation.runTo('2026-02-28T23:00:00Z');
  expect(iso(simulation.sends).slice(1)).toEqual([
    '2026-02-28T12:07:00.000Z',
    '2026-02-28T16:07:00.000Z',
  ]);
  expect(nextPaymentAt(simulation.state)).toBe(at('2026-03-31T12:00:00Z'));
});

test('no charge is made when a pause or cancel comes between due date and charge [D-§4]', () => {
  for (const command of ['pause', 'cancel'] as const) {
    const simulation = subscribed();
    simulation.runTo('2026-02-28T12:03:00Z');
    simulation.command(command, command === 'cancel' ? { reason: 'cancelled' } : {});
    simulation.runTo('2026-03-15T00:00:00Z');
    expect(simulation.sends).toHaveLength(1);
  }
});

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
