import { expect, test } from 'vitest';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import { simulate } from '../../domain/subscription/simulate.ts';
import { iso, subscribed, UNKNOWN } from '../support/simulation.ts';

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
