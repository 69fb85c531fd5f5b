import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { IntervalUnit } from '../../domain/calendar.ts';
import type { Command } from '../../domain/subscription/commands.ts';
import { wakeAt } from '../../domain/subscription/decide.ts';
import { describe as inWords } from '../../domain/subscription/describe.ts';
import { nextPaymentAt, remainingCycleCount } from '../../domain/subscription/state.ts';
import type { Terms } from '../../domain/subscription/state.ts';
import { upcomingCharges } from '../../domain/subscription/upcoming.ts';
import { JITTER_WINDOW_MAX_MS } from '../../domain/subscription/jitter.ts';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import { HARD, LifeInDoubt } from '../support/life-in-doubt.ts';
import type { Death, Finding } from '../support/life-in-doubt.ts';
import type { ChargeFault, LookupFault } from '../support/model-gateway.ts';
import { DAY, HOUR } from '../support/simulation.ts';

/** Every arrow of the table in D-§4, and no other. */
const ARROWS = new Set([
  'CREATED>ACTIVE',
  'CREATED>TRIALING',
  'CREATED>ENDED',
  'TRIALING>ACTIVE',
  'TRIALING>UNPAID',
  'TRIALING>PAUSED',
  'TRIALING>ENDED',
  'ACTIVE>UNPAID',
  'ACTIVE>PAUSED',
  'ACTIVE>ENDED',
  'UNPAID>ACTIVE',
  'UNPAID>PAUSED',
  'UNPAID>ENDED',
  'PAUSED>ACTIVE',
  'PAUSED>ENDED',
]);

/** Plain data, so that a counterexample can be read. */
type Move =
  | { charges: ChargeFault[] }
  | { lookups: LookupFault[] }
  /** Something is charged, that befalls it, and then nobody reaches the gateway for a while. */
  | { charge: ChargeFault; thenLookups: LookupFault[]; awayMs: number }
  | { death: Death }
  | { finding: Finding }
  | { waitMs: number }
  /** Up to the next instant at which something is due, and what is due then. */
  | { waitFor: 'next' }
  | { command: Exclude<Command['kind'], 'edit' | 'unpause' | 'cancel'> }
  | { cancel: 'cancelled' | 'checkout_cancelled' }
  | { unpauseInMs: number }
  | { edit: EditFields; inMs?: number };

interface EditFields {
  newAmountMinor?: number;
  newCycleCount?: number;
  interval?: IntervalUnit;
  intervalCount?: number;
}

type Start = 'created' | 'paid' | 'owing';

const DECLINED: ChargeFault = { line: 'clear', card: 'card_declined', lateMs: 0 };
const TOKEN = { paymentToken: 'ptk', checkoutSessionId: 'cs' };

function make(life: LifeInDoubt, move: Move): void {
  if ('charges' in move) life.gateway.chargeFaults.push(...move.charges);
  else if ('lookups' in move) life.gateway.lookupFaults.push(...move.lookups);
  else if ('charge' in move) {
    life.gateway.chargeFaults.push(move.charge);
    const isUnpaid = life.state.status === 'CREATED' && !life.state.openAttempt;
    if (isUnpaid) life.pay();
    else runToNext(life);
    life.gateway.lookupFaults.push(...move.thenLookups);
    life.gateway.awayUntil = life.now + move.awayMs;
  } else if ('death' in move) life.deaths.push(move.death);
  else if ('finding' in move) life.settleReview(move.finding);
  else if ('waitMs' in move) life.runTo(life.now + move.waitMs);
  else if ('waitFor' in move) runToNext(life);
  else if ('cancel' in move) life.command('cancel', { reason: move.cancel });
  else if ('unpauseInMs' in move) {
    life.command('unpause', { newNextPaymentAt: life.now + move.unpauseInMs });
  } else if ('edit' in move) {
    const moved = move.inMs === undefined ? {} : { newNextPaymentAt: life.now + move.inMs };
    life.command('edit', { ...move.edit, ...moved });
  } else life.command(move.command, TOKEN);
}

function begin(life: LifeInDoubt, start: Start): void {
  if (start !== 'created') life.pay();
  if (start !== 'owing') return;
  life.gateway.chargeFaults.push(DECLINED);
  runToNext(life);
}

function runToNext(life: LifeInDoubt): void {
  life.runTo(Math.max(life.now, wakeAt(life.state) ?? life.now));
}

const of = fc.constantFrom;
const intervals = of<IntervalUnit>('DAY', 'WEEK', 'MONTH', 'YEAR');
const daysMs = fc.integer({ min: 1, max: 90 * DAY });
const hoursMs = fc.oneof(of(4 * HOUR, 20 * HOUR, 25 * HOUR), fc.integer({ min: 0, max: 6 * HOUR }));
const secondsMs = fc.oneof(of(0, 1, 10_000), fc.integer({ min: 0, max: 90_000 }));

const chargeFault: fc.Arbitrary<ChargeFault> = fc.record({
  line: of('clear', 'clear', 'clear', 'answer_lost', 'request_lost', 'late', 'late', 'rejected'),
  card: of('good', 'good', 'card_declined', 'card_declined', HARD),
  lateMs: fc.oneof(secondsMs, hoursMs, fc.integer({ min: 0, max: 3 * DAY })),
});

const weighted = <T>(...each: [number, fc.Arbitrary<T>][]): fc.Arbitrary<T> =>
  fc.oneof(...each.map(([weight, arbitrary]) => ({ weight, arbitrary })));

const chargeFaults = fc.array(chargeFault, { minLength: 1, maxLength: 3 });
const lookups = of<LookupFault[]>(
  [],
  [],
  [],
  ['unanswered'],
  ['rejected'],
  ['rejected', 'rejected'],
);
const awayMs = fc.oneof(of(0), of(0), secondsMs, hoursMs, fc.integer({ min: 0, max: 2 * DAY }));

const moves: fc.Arbitrary<Move> = weighted<Move>(
  [12, fc.record({ charge: chargeFault, thenLookups: lookups, awayMs })],
  [3, chargeFaults.map((charges) => ({ charges }))],
  [1, lookups.map((lookups) => ({ lookups }))],
  [2, of<Move>({ death: 'before_sending' }, { death: 'after_sending' })],
  [5, of<Move>({ finding: 'paid' }, { finding: 'declined' }, { finding: 'not_charged' })],
  [6, of<Move>({ waitFor: 'next' })],
  [5, fc.oneof(secondsMs, hoursMs, daysMs).map((waitMs) => ({ waitMs }))],
  [1, of<Move>({ command: 'completeCheckout' })],
  [2, of<Move>({ command: 'replacePaymentMethod' })],
  [5, of<Move>({ command: 'manualRetry' })],
  [2, of<Move>({ command: 'pause' })],
  [4, fc.oneof(secondsMs, hoursMs, daysMs).map((unpauseInMs) => ({ unpauseInMs }))],
  [2, fc.oneof(hoursMs, daysMs).map((inMs) => ({ edit: {}, inMs }))],
  [2, fc.integer({ min: 101, max: 9_999 }).map((newAmountMinor) => ({ edit: { newAmountMinor } }))],
  [1, fc.integer({ min: 1, max: 8 }).map((newCycleCount) => ({ edit: { newCycleCount } }))],
  [
    1,
    fc
      .tuple(intervals, daysMs)
      .map(([interval, inMs]) => ({ edit: { interval, intervalCount: 2 }, inMs })),
  ],
  [2, of<Move>({ cancel: 'cancelled' }, { cancel: 'cancelled' }, { cancel: 'checkout_cancelled' })],
);

const terms: fc.Arbitrary<Partial<Terms>> = fc.record({
  cycleCount: fc.integer({ min: 1, max: 5 }),
  interval: intervals,
  trial: of(null, null, { interval: 'DAY' as const, count: 3 }),
  upfrontAmountMinor: of(null, 150),
});

const lives = fc.record({
  terms,
  jitterMs: of(0, 1, 30 * 60_000, JITTER_WINDOW_MAX_MS),
  afterExhausted: of('stay_unpaid', 'stay_unpaid', 'end'),
  sequence: fc.array(moves, { minLength: 1, maxLength: 24, size: 'max' }),
  /** Where it stands when the first move is made. */
  start: of<Start>('created', 'paid', 'paid', 'paid', 'owing', 'owing'),
});

/** What is not true of a subscription, and always should be. */
function broken(life: LifeInDoubt): string[] {
  const { state } = life;
  const isOver = state.status === 'ENDED';
  const hasNext = ['TRIALING', 'ACTIVE', 'UNPAID'].includes(state.status);
  const charged = life.events.filter((type) => type === 'subscription.cycle_charged').length;
  // A cycle is owed without a plan only for a reason.
  const isStuck =
    state.status === 'UNPAID' && state.openAttempt === null && state.owed?.nextRetryAt === null;
  const plan = state.owed?.retryPlan?.delaysMs.length ?? Infinity;
  const hasReason =
    state.owed?.retriesStopped === true ||
    (state.owed?.retriesUsed ?? 0) >= plan ||
    (state.owed?.automaticAttemptsAt.length ?? 0) >= 15;
  const rules = {
    'an event for every cycle charged': state.cyclesCharged === charged,
    'cycles left': remainingCycleCount(state) === state.terms.cycleCount - state.cyclesCharged,
    'no cycle too many': state.cyclesCharged <= state.terms.cycleCount,
    'all paid is over': isOver || state.cyclesCharged < state.terms.cycleCount,
    'an end has a reason': (state.endReason !== null) === isOver,
    'the next cycle is the owed one':
      state.owed === null || state.owed.cycleNumber === state.cyclesCharged + 1,
    'an attempt is for something owed': state.openAttempt === null || state.owed !== null,
    'UNPAID owes': state.status !== 'UNPAID' || state.owed !== null,
    'at most three of three charges to come': upcomingCharges(state, 3).length <= 3,
    'it can be said': inWords(state).includes(`**${state.status}**`),
    'a date only where one is to come': hasNext || nextPaymentAt(state) === null,
    'a date that was set is the next':
      !['TRIALING', 'ACTIVE'].includes(state.status) ||
      life.now >= life.setDateAt ||
      nextPaymentAt(state) === life.setDateAt,
    'nothing to do after the end': !isOver || state.openAttempt !== null || wakeAt(state) === null,
    'nothing waits for ever': !isStuck || hasReason,
  };
  return Object.entries(rules).flatMap(([rule, isSo]) => (isSo ? [] : [rule]));
}

/** Asserted once all is decided, in one go: ten thousand times. */
function expectRest(life: LifeInDoubt): void {
  const { state, gateway, rows, cancelledAt } = life;
  const entries = [...gateway.book.values()].map((entry) => ({
    ...entry,
    row: rows.get(entry.key),
  }));
  const charged = entries.filter(({ outcome }) => outcome === 'charged');
  const kept = charged.filter(({ isGivenBack }) => !isGivenBack);
  const arrows = life.statuses.slice(1).map((to, n) => `${life.statuses[n]}>${to}`);
  const isAtRest = ['UNPAID', 'PAUSED', 'ENDED'].includes(state.status);
  expect({
    wrong: broken(life),
    undecided: isAtRest ? state.openAttempt : state.status,
    unknownArrows: arrows.filter((arrow) => !ARROWS.has(arrow)),
    // The book: cycle by cycle, each once, for what was owed when it fell due.
    kept: kept.map(({ row, amountMinor }) => [row?.cycleNumber, amountMinor]),
    // What is kept was booked as paid; what goes back was not.
    misbooked: charged.filter(
      ({ row, isGivenBack }) => row?.state !== (isGivenBack ? 'DECLINED' : 'SUCCEEDED'),
    ),
    succeeded: [...rows.values()].filter((row) => row.state === 'SUCCEEDED').length,
    // Whatever arrived after a cancel had been sent before it.
    sentTooLate: entries.filter(
      ({ row }) => cancelledAt !== null && (row?.firstSentAt ?? Infinity) > cancelledAt,
    ),
    // JSON carries it whole: it is the argument of continue-as-new.
    state: JSON.parse(JSON.stringify(state)) as unknown,
  }).toEqual({
    wrong: [],
    undecided: null,
    unknownArrows: [],
    kept: Array.from({ length: state.cyclesCharged }, (_, n) => [n + 1, life.owedMinor.get(n + 1)]),
    misbooked: [],
    succeeded: kept.length,
    sentTooLate: [],
    state,
  });
}

/** Situations without which this would prove little. */
const SITUATIONS = [
  ...['asked for', 'in review'].flatMap((doubt) =>
    [
      'cancel accepted',
      'edit of the amount accepted',
      'edit of the date accepted',
      'edit of the interval accepted',
      'edit of the count accepted',
      'pause accepted',
      'unpause accepted',
      'replacePaymentMethod accepted',
      'manualRetry refused',
      'completeCheckout refused',
      'cancel refused',
      'edit of the amount refused',
      'pause refused',
      'unpause refused',
      'replacePaymentMethod refused',
    ].map((what) => `${what} while ${doubt}`),
  ),
  'cancel accepted while unsent',
  ...['checkout', 'scheduled', 'automatic_retry', 'manual_retry', 'new_method'].flatMap((trigger) =>
    ['succeeded', 'declined', 'unknown', 'review'].map((outcome) => `${trigger} ${outcome}`),
  ),
  ...['PAUSED', 'ENDED'].flatMap((status) => [
    `succeeded while ${status}`,
    `declined while ${status}`,
    `withdrawn unsent, ${status}`,
    `withdrawn after it was sent, ${status}`,
  ]),
  'sent again under its key',
  'arrived after nothing was found',
  'arrived after it was sent again',
  'given back: it was withdrawn',
  'review: rejected',
  'review: asked for 24 h',
  'review: key too old',
  'a person says paid',
  'a person says declined',
  'a person says not_charged',
  'a person says not_charged, wrongly',
  'the gateway knew more than the person',
  'given back: a person had said no',
];

describe('any sequence of commands, times, lost answers and findings', () => {
  test('stays within the table of D-§4 and charges every cycle at most once [D-§4, D-15, D-31, D-32, D-40]', () => {
    const seen = new Map<string, number>();
    fc.assert(
      fc.property(fc.noBias(lives), ({ terms, jitterMs, afterExhausted, sequence, start }) => {
        const plan = { ...DEFAULT_RETRY_PLAN, afterExhausted };
        const life = new LifeInDoubt('2026-01-31T00:00:00Z', terms, plan, jitterMs);
        life.seen = seen;
        begin(life, start);
        for (const move of sequence) {
          make(life, move);
          const wrong = broken(life);
          if (wrong.length > 0) throw new Error(wrong.join(', '));
        }
        life.comeToRest();
        expectRest(life);
      }),
      { numRuns: 10_000 },
    );
    expect(SITUATIONS.filter((what) => !seen.has(what))).toEqual([]);
  });
});
