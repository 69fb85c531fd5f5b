import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { IntervalUnit } from '../../domain/calendar.ts';
import type { Change } from '../../domain/subscription/change.ts';
import { DAY, declined, HOUR, Simulation } from '../support/simulation.ts';
import { weighted } from '../support/weighted.ts';

/** The shortest length of an interval. February has 28 days. */
const SHORTEST_DAYS: Record<IntervalUnit, number> = { DAY: 1, WEEK: 7, MONTH: 28, YEAR: 365 };

const shortestMs = ({ state }: Simulation): number =>
  SHORTEST_DAYS[state.terms.interval] * state.terms.intervalCount * DAY;

/** Records the date that belongs to each cycle, and fails if the next cycle is charged too soon after it. */
class WatchedLife extends Simulation {
  /** The owed cycle's date: its due date, or the date that a command has set for it. */
  private owedAt: number | null = null;
  /** The date and the interval of the latest paid cycle; null if a command has set the next date since. */
  private paid: { at: number; intervalMs: number } | null = null;
  checked = 0;

  /** A command or the end of a pause sets the next date: of the owed cycle, else of the next cycle. */
  setDate(at: number): void {
    if (this.state.owed === null) this.paid = null;
    else this.owedAt = at;
  }

  protected override take(step: Parameters<Simulation['take']>[0]): void {
    if (step.do === 'endPause') this.setDate(step.at);
    if (step.do === 'chargeCycle' && this.state.owed === null) {
      if (this.paid !== null) {
        const shorterMs = Math.min(this.paid.intervalMs, shortestMs(this));
        expect(this.now - this.paid.at).toBeGreaterThanOrEqual(shorterMs);
        this.checked += 1;
      }
      this.owedAt = step.dueAt;
    }
    super.take(step);
  }

  protected override adopt(change: Change): void {
    const before = this.state;
    super.adopt(change);
    if (change.state.cyclesCharged === before.cyclesCharged) return;
    this.paid = { at: this.owedAt ?? this.now, intervalMs: shortestMs(this) };
    this.owedAt = null;
  }
}

type Move = (life: WatchedLife) => unknown;

const later = fc.oneof(
  fc.integer({ min: 1, max: 30 * HOUR }),
  fc.integer({ min: 1, max: 50 }).map((days) => days * DAY),
);
const codes = fc.constantFrom('insufficient_funds', 'card_declined', 'lost_card');
const unitOrNone = fc.constantFrom<IntervalUnit | null>(null, 'WEEK', 'YEAR');

/** Sends a command with the date `ms` from now. */
function setDate(
  life: WatchedLife,
  kind: 'edit' | 'unpause',
  ms: number,
  unit: IntervalUnit | null = null,
): void {
  const newNextPaymentAt = life.now + ms;
  const step = unit === null ? {} : { interval: unit, intervalCount: 1 };
  const { decision } = life.command(kind, { newNextPaymentAt, ...step });
  if (decision.ok) life.setDate(newNextPaymentAt);
}

const moves: fc.Arbitrary<Move> = weighted<Move>(
  [
    5,
    later.map(
      (ms): Move =>
        (life) =>
          life.runTo(life.now + ms),
    ),
  ],
  [
    4,
    fc.array(codes, { maxLength: 4 }).map(
      (list): Move =>
        (life) =>
          life.gives(...list.map(declined)),
    ),
  ],
  [
    4,
    fc.constantFrom<Move>(
      (life) => life.retry(),
      (life) => life.newCard(),
      (life) => life.pause(),
    ),
  ],
  [
    3,
    fc.tuple(later, unitOrNone).map(
      ([ms, unit]): Move =>
        (life) =>
          setDate(life, 'edit', ms, unit),
    ),
  ],
  [
    2,
    later.map(
      (ms): Move =>
        (life) =>
          setDate(life, 'unpause', ms),
    ),
  ],
  [
    1,
    later.map(
      (ms): Move =>
        (life) =>
          life.command('pause', { resumeAt: life.now + ms }),
    ),
  ],
);

test('two cycles are never charged closer than the shorter of their intervals unless a command has set the date after the first payment [D-15, D-§4]', () => {
  let checked = 0;
  fc.assert(
    fc.property(
      fc.constantFrom<IntervalUnit>('DAY', 'WEEK', 'MONTH', 'YEAR'),
      fc.array(moves, { minLength: 1, maxLength: 30, size: 'max' }),
      (interval, steps) => {
        const life = new WatchedLife('2027-01-31T12:00Z', { cycleCount: 12, interval });
        life.pay();
        for (const step of steps) step(life);
        life.runTo(life.now + 400 * DAY);
        checked += life.checked;
      },
    ),
    { numRuns: 5_000 },
  );
  expect(checked).toBeGreaterThan(10_000);
});
