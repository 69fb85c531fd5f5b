import { expect, test } from 'vitest';
import { Simulation } from '../support/simulation.ts';

/** Creates a monthly subscription on 10 January. Nothing runs until 15 May, so that four cycles are overdue. */
function afterOutage(): Simulation {
  const simulation = new Simulation('2026-01-10T12:00:00Z', { cycleCount: 12 });
  simulation.pay();
  simulation.now = Date.parse('2026-05-15T00:00:00Z');
  return simulation;
}

const dueOf = (simulation: Simulation) =>
  simulation.sends.map(
    ({ dueAt, trigger }) => `${new Date(dueAt).toISOString().slice(0, 10)} ${trigger}`,
  );

test('overdue cycles are charged in order, each with its own due date, after an outage [D-05]', () => {
  const simulation = afterOutage();
  simulation.runTo('2026-05-15T00:00:00Z');
  expect(dueOf(simulation)).toEqual([
    '2026-01-10 checkout',
    '2026-02-10 scheduled',
    '2026-03-10 scheduled',
    '2026-04-10 scheduled',
    '2026-05-10 scheduled',
  ]);
  expect(simulation.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 5 });
});

test('overdue dates after a declined cycle are skipped and not billed later [D-05, D-§4]', () => {
  const simulation = afterOutage();
  simulation.replies.push({ kind: 'succeeded' }, { kind: 'declined', code: 'card_declined' });
  simulation.runTo('2026-05-15T00:00:00Z');
  expect(dueOf(simulation)).toEqual([
    '2026-01-10 checkout',
    '2026-02-10 scheduled',
    '2026-03-10 scheduled',
  ]);
  expect(simulation.state).toMatchObject({ status: 'UNPAID', cyclesCharged: 2 });

  // The retry four hours later pays March. The next charge is in June: April and May are not owed.
  simulation.runTo('2026-06-11T00:00:00Z');
  expect(dueOf(simulation).slice(3)).toEqual([
    '2026-03-10 automatic_retry',
    '2026-06-10 scheduled',
  ]);
  expect(simulation.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 4 });
});
