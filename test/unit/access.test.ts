import fc from 'fast-check';
import { expect, test } from 'vitest';
import { addTrial } from '../../domain/calendar.ts';
import type { IntervalUnit } from '../../domain/calendar.ts';
import type { EventDraft } from '../../domain/events.ts';
import { isIntentEvent } from '../../domain/events.ts';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import type { Change } from '../../domain/subscription/change.ts';
import { wakeAt } from '../../domain/subscription/decide.ts';
import type { Terms } from '../../domain/subscription/terms.ts';
import { HARD, LifeInDoubt } from '../support/life-in-doubt.ts';
import { PaidTime } from '../support/paid-time.ts';
import { DAY, HOUR, TOKEN } from '../support/simulation.ts';
import { weighted } from '../support/weighted.ts';

type Step =
  | { waitMs: number }
  /** Runs to the next due instant, or to the last millisecond before it. */
  | { waitFor: 'next' | 'just before the next' }
  | { declines: ('card_declined' | typeof HARD)[] }
  | { command: 'manualRetry' | 'replacePaymentMethod' | 'pause' | 'resume' }
  | { pauseForMs: number }
  | { unpauseInMs: number }
  | { cancel: 'now' | 'at period end' }
  | { editAmountMinor: number }
  | { editDateInMs: number; unit?: IntervalUnit; count?: number };

/** A simulated subscription that keeps each event which its merchant would receive. */
class ObservedLife extends LifeInDoubt {
  readonly drafts: EventDraft[] = [];

  protected override adopt(change: Change): void {
    super.adopt(change);
    this.drafts.push(...change.events);
  }
}

/**
 * A merchant who follows "When to give and take access" of `docs/integrating.md`: the merchant stores the date
 * `currentPeriodEnd` of each event, and gives access until the latest stored date.
 */
class Merchant {
  /** Each stored date, with the instant from which it applies. */
  private readonly stored: { fromAt: number; until: number | null }[] = [];

  /** Each `subscription.*` event replaces the stored date. An `intent.*` event has no such date. */
  receive(event: EventDraft): void {
    if (!isIntentEvent(event)) this.store(event.at, event.currentPeriodEndAt);
  }

  store(fromAt: number, until: number | null): void {
    this.stored.push({ fromAt, until });
  }

  gives(at: number): boolean {
    return at < (this.storedAt(at) ?? 0);
  }

  storedAt(at: number): number | null {
    return this.stored.findLast(({ fromAt }) => fromAt <= at)?.until ?? null;
  }
}

/**
 * Takes a subscription through `steps` and a further year. Fails if, after a step, the date that the merchant
 * stores or the access by `GET /customer/{id}/state` is wrong. Fails also if the merchant's access differs from
 * the paid time at an event, at a start or end of the paid time, or 1 ms before one of them. Adds the situations
 * that occurred to `situations`.
 */
function live(
  terms: Partial<Terms>,
  unpaidFrom: 'first_decline' | 'retries_exhausted',
  steps: Step[],
  situations: Set<string>,
): void {
  const life = new ObservedLife('2027-01-31T12:00:00Z', terms, {
    ...DEFAULT_RETRY_PLAN,
    unpaidFrom,
  });
  const { interval, intervalCount, trial } = life.state.terms;
  const paid = new PaidTime(interval, intervalCount);
  const merchant = new Merchant();
  const seen = { events: 0, charges: 0 };

  const observe = (): void => {
    const charges = [...life.gateway.book.values()];
    for (const { outcome, at } of charges.slice(seen.charges)) {
      if (outcome === 'charged') paid.charged(at);
    }
    for (const event of life.drafts.slice(seen.events)) merchant.receive(event);
    seen.charges = charges.length;
    seen.events = life.drafts.length;
  };

  const compare = (): void => {
    expect({
      storedByEvents: merchant.storedAt(life.now),
      'GET /customer/{id}/state': life.now < (life.state.currentPeriodEndAt ?? 0),
    }).toEqual({
      storedByEvents: life.state.currentPeriodEndAt,
      'GET /customer/{id}/state': paid.includes(life.now),
    });
  };

  if (trial) paid.trialBegan(life.now, addTrial(life.now, trial.interval, trial.count));
  life.pay();
  observe();
  compare();
  for (const step of steps) {
    take(life, step, paid, merchant, observe);
    observe();
    compare();
  }
  life.runTo(life.now + 366 * DAY);
  observe();
  compare();
  const instants = [...paid.edges, ...life.drafts.map(({ at }) => at)].flatMap((at) => [
    at - 1,
    at,
  ]);
  const wrong = instants.filter((at) => merchant.gives(at) !== paid.includes(at));
  expect(wrong.map((at) => new Date(at).toISOString())).toEqual([]);
  for (const situation of paid.situations) situations.add(situation);
}

function take(
  life: ObservedLife,
  step: Step,
  paid: PaidTime,
  merchant: Merchant,
  observe: () => void,
): void {
  if ('waitMs' in step) life.runTo(life.now + step.waitMs);
  else if ('waitFor' in step) {
    const nextAt = wakeAt(life.state) ?? life.now;
    life.runTo(Math.max(life.now, step.waitFor === 'next' ? nextAt : nextAt - 1));
  } else if ('declines' in step) {
    const faults = step.declines.map((card) => ({ line: 'clear' as const, card, lateMs: 0 }));
    life.gateway.chargeFaults.push(...faults);
  } else if ('pauseForMs' in step) {
    const resumeAt = life.now + step.pauseForMs;
    if (life.command('pause', { resumeAt }).decision.ok) paid.paused(life.now, resumeAt);
  } else if ('unpauseInMs' in step) {
    const newNextPaymentAt = life.now + step.unpauseInMs;
    if (life.command('unpause', { newNextPaymentAt }).decision.ok) paid.unpaused(newNextPaymentAt);
  } else if ('cancel' in step) {
    const fields = step.cancel === 'now' ? {} : { atPeriodEnd: true };
    const { decision } = life.command('cancel', { reason: 'cancelled', ...fields });
    if (decision.ok && step.cancel === 'now') paid.cancelled(life.now);
  } else if ('editAmountMinor' in step) {
    life.command('edit', { newAmountMinor: step.editAmountMinor });
  } else if ('editDateInMs' in step) {
    const newNextPaymentAt = life.now + step.editDateInMs;
    const { unit, count } = step;
    const interval = unit && count ? { interval: unit, intervalCount: count } : {};
    const isTrial = life.drafts.at(-1)?.type === 'subscription.trialing';
    if (!life.command('edit', { newNextPaymentAt, ...interval }).decision.ok) return;
    paid.edited(life.now, newNextPaymentAt, unit && count ? { unit, count } : undefined);
    // No event tells that the merchant moved the end of a trial, so the merchant stores the new date itself.
    if (isTrial) merchant.store(life.now, newNextPaymentAt);
  } else {
    const { decision } = life.command(step.command, TOKEN);
    if (decision.ok && step.command === 'pause') paid.paused(life.now, null);
  }
  observe();
}

const of = fc.constantFrom;
const delays = fc.oneof(
  fc.integer({ min: 1, max: 26 * HOUR }),
  fc.integer({ min: 1, max: 70 }).map((days) => days * DAY),
);
const declines = fc.array(of('card_declined', 'card_declined', 'card_declined', HARD), {
  minLength: 1,
  maxLength: 6,
});

const units = of<IntervalUnit>('DAY', 'WEEK', 'MONTH', 'YEAR');
const NEXT = { waitFor: 'next' } as const;

const steps = weighted<Step>(
  [5, delays.map((waitMs) => ({ waitMs }))],
  [6, of<Step>(NEXT, NEXT, { waitFor: 'just before the next' })],
  [4, declines.map((declines) => ({ declines }))],
  [4, of<Step>({ command: 'manualRetry' }, { command: 'replacePaymentMethod' })],
  [1, of<Step>({ command: 'pause' })],
  [2, delays.map((pauseForMs) => ({ pauseForMs }))],
  [3, delays.map((unpauseInMs) => ({ unpauseInMs }))],
  [2, of<Step>({ cancel: 'at period end' }, { command: 'resume' })],
  [1, of<Step>({ cancel: 'now' })],
  [1, of<Step>({ editAmountMinor: 2_999 })],
  [2, delays.map((editDateInMs) => ({ editDateInMs }))],
  [2, fc.record({ editDateInMs: delays, unit: units, count: fc.integer({ min: 1, max: 3 }) })],
);

const lives = fc.record({
  terms: fc.record({
    cycleCount: fc.integer({ min: 1, max: 15 }),
    interval: of<IntervalUnit>('WEEK', 'MONTH', 'MONTH', 'YEAR'),
    trial: of(null, { interval: 'DAY' as const, count: 14 }),
  }),
  unpaidFrom: of('first_decline' as const, 'first_decline' as const, 'retries_exhausted' as const),
  steps: fc.array(steps, { minLength: 1, maxLength: 20, size: 'max' }),
});

/** The situations that the random sequences must cover. */
const SITUATIONS = [
  'the date of a trial moved',
  'a trial paused',
  'a trial cancelled',
  'a pause ended by itself',
  'a gap between paid periods',
  'a payment before the end of the paid period',
];

test('the access that docs/integrating.md recommends begins and ends with the paid time in 1,000 random sequences of steps [D-34]', () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(fc.noBias(lives), ({ terms, unpaidFrom, steps }) =>
      live(terms, unpaidFrom, steps, seen),
    ),
    { numRuns: 1_000, seed: 20_270_131 },
  );
  expect(SITUATIONS.filter((situation) => !seen.has(situation))).toEqual([]);
});

test('the paid period keeps its end when a cycle of a shorter interval is paid [D-34]', () => {
  const life = new LifeInDoubt('2027-01-31T12:00Z', { cycleCount: 12 });
  life.pay();
  expect(life.paidUntil).toBe('2027-02-28T12:00');
  life.edit('2027-02-10T12:00Z', { interval: 'WEEK', intervalCount: 1 });
  life.runTo('2027-02-10T12:00Z');
  expect([life.sends.length, life.paidUntil]).toEqual([2, '2027-02-28T12:00']);
  life.runTo('2027-02-24T12:00Z');
  expect([life.sends.length, life.paidUntil]).toEqual([4, '2027-03-03T12:00']);
});

test.each<[string, string, string, (life: LifeInDoubt) => unknown]>([
  ['not when the trial is paused', 'PAUSED', '2027-02-14T12:00', (life) => life.pause()],
  ['not when it is cancelled', 'ENDED', '2027-02-14T12:00', (life) => life.cancel()],
  [
    'not when the charge at its end is declined',
    'UNPAID',
    '2027-02-14T12:00',
    (life) => {
      life.gateway.chargeFaults.push({ line: 'clear', card: 'card_declined', lateMs: 0 });
      life.runTo('2027-02-14T12:00Z');
    },
  ],
  ['with an edit', 'TRIALING', '2027-02-07T12:00', (life) => life.edit('2027-02-07T12:00Z')],
])('the end of a trial moves %s [D-34]', (_name, status, paidUntil, command) => {
  const life = new LifeInDoubt('2027-01-31T12:00Z', { trial: { interval: 'DAY', count: 14 } });
  life.pay();
  command(life);
  expect(life).toMatchObject({ state: { status }, paidUntil });
});
