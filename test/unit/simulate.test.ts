import { expect, test } from 'vitest';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import { inParts } from '../../api/routes/subscriptions/simulate.ts';
import { simulate, simulateByStep } from '../../domain/subscription/simulate.ts';
import { iso, subscribed, UNKNOWN } from '../support/simulation.ts';
import type { Simulation } from '../support/simulation.ts';

test('a simulation settles an open attempt at once, because real time is not simulated [D-58]', () => {
  const simulation = subscribed('2026-01-10').gives(UNKNOWN);
  simulation.runTo('2026-02-10');
  const script = { outcomes: [], commands: [] };
  const { steps } = simulate(simulation.state, simulation.now, DEFAULT_RETRY_PLAN, script);
  expect(steps.map(({ at, what }) => [iso(at), what])).toEqual([
    ['2026-02-10', 'cycle 2 paid, 19.99 USD'],
    ['2026-03-10', 'cycle 3 paid, 19.99 USD'],
  ]);
});

const stepsFrom = ({ state, now }: Simulation) =>
  simulate(state, now, DEFAULT_RETRY_PLAN, { outcomes: [], commands: [] }).steps.map(
    ({ at, what, status }) => `${iso(at)} ${status}: ${what}`,
  );

test('a simulation does not pay the charge of unknown outcome that a pause or a cancellation has voided [D-58, D-§4]', () => {
  const paused = subscribed('2026-01-10').gives(UNKNOWN);
  paused.runTo('2026-02-10');
  paused.pause();
  expect(stepsFrom(paused)).toEqual(['2026-02-10 PAUSED: cycle 2 declined (processing_error)']);
  const cancelled = subscribed('2026-01-10').gives(UNKNOWN);
  cancelled.runTo('2026-02-10');
  cancelled.cancel();
  expect(stepsFrom(cancelled)).toEqual(['2026-02-10 ENDED: cycle 2 declined (processing_error)']);
});

test('a simulation charges the new card after the charge of unknown outcome that it replaces [D-58, D-33]', () => {
  const lives = [
    ['processing_error', 'ACTIVE', UNKNOWN],
    ['authentication_required', 'UNPAID', { ...UNKNOWN, awaitsPayer: true }],
  ] as const;
  for (const [code, status, reply] of lives) {
    const simulation = subscribed('2026-01-10').gives(reply);
    simulation.runTo('2026-02-10');
    simulation.newCard();
    expect(stepsFrom(simulation)).toEqual([
      `2026-02-10 ${status}: cycle 2 declined (${code})`,
      '2026-02-10 ACTIVE: cycle 2 paid, 19.99 USD',
      '2026-03-10 ENDED: cycle 3 paid, 19.99 USD',
    ]);
  }
});

test('other requests proceed after every 20 steps of a simulation [D-58, D-22]', async () => {
  const { state, now } = subscribed('2026-01-10', { cycleCount: 25 });
  const done: string[] = [];
  const declineOf = () => {
    done.push('charge');
    return null;
  };
  setImmediate(() => done.push('other request'));
  const script = { outcomes: [], commands: [], declineOf };
  await inParts(simulateByStep(state, now, DEFAULT_RETRY_PLAN, script));
  // A charge has two steps: the wait until its date, and the charge. The first cycle is paid.
  expect(done.indexOf('other request')).toBe(10);
  expect(done).toHaveLength(25);
});
