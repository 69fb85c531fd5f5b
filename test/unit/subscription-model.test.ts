import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { IntervalUnit } from '../../domain/calendar.ts';
import type { Command } from '../../domain/subscription/commands.ts';
import { wakeAt } from '../../domain/subscription/decide.ts';
import {
  cancelAt,
  nextPaymentAt,
  nextRetryAt,
  remainingCycleCount,
} from '../../domain/subscription/state.ts';
import type { Terms } from '../../domain/subscription/terms.ts';
import { stateProblem } from '../../domain/subscription/recorded-state.ts';
import { upcomingCharges } from '../../domain/subscription/upcoming.ts';
import { ledgerProblems } from '../../cli/verify/ledger-check.ts';
import { JITTER_WINDOW_MAX_MS } from '../../cli/merchant/configure.ts';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import { ASKS_PAYER, HARD, LifeInDoubt } from '../support/life-in-doubt.ts';
import type { Death, Finding } from '../support/life-in-doubt.ts';
import type { ChargeFault, LookupFault } from '../support/model-gateway.ts';
import { DAY, HOUR, TOKEN } from '../support/simulation.ts';
import { weighted } from '../support/weighted.ts';

/** Every status transition that the rules allow. */
const TRANSITIONS = Object.entries({
  CREATED: 'ACTIVE TRIALING ENDED',
  TRIALING: 'ACTIVE UNPAID PAUSED ENDED',
  ACTIVE: 'UNPAID PAUSED ENDED',
  UNPAID: 'ACTIVE PAUSED ENDED',
  PAUSED: 'ACTIVE UNPAID ENDED',
}).flatMap(([from, to]) => to.split(' ').map((status) => `${from}>${status}`));

/** One step of a sequence, as plain data, so that a counterexample is readable. */
type Move =
  | { charges: ChargeFault[] }
  | { lookups: LookupFault[] }
  /** The next charge gets this fault. Then the gateway is unreachable for `awayMs`. */
  | { charge: ChargeFault; thenLookups: LookupFault[]; awayMs: number }
  | { death: Death }
  | { finding: Finding }
  | { waitMs: number }
  /** Runs to the next instant at which work is due, and does that work. */
  | { waitFor: 'next' }
  | { command: Exclude<Command['kind'], 'edit' | 'unpause' | 'cancel'> }
  /** The payer begins to confirm the owed payment; the charge gets this fault. */
  | { confirmation: ChargeFault }
  | { pauseForMs: number }
  | { cancel: 'cancelled' | 'checkout_cancelled' | 'at_period_end' }
  | { unpauseInMs: number }
  | { edit: EditFields; inMs?: number };

interface EditFields {
  newAmountMinor?: number;
  newCycleCount?: number;
  interval?: IntervalUnit;
  intervalCount?: number;
}

type Start = 'created' | 'paid' | 'owing' | 'owing a confirmation';

const DECLINED: ChargeFault = { line: 'clear', card: 'card_declined', lateMs: 0 };

function make(simulation: LifeInDoubt, move: Move): void {
  if ('charges' in move) simulation.gateway.chargeFaults.push(...move.charges);
  else if ('lookups' in move) simulation.gateway.lookupFaults.push(...move.lookups);
  else if ('charge' in move) {
    simulation.gateway.chargeFaults.push(move.charge);
    const isCheckoutOpen = simulation.state.status === 'CREATED' && !simulation.state.openAttempt;
    if (isCheckoutOpen) simulation.pay();
    else runToNext(simulation);
    simulation.gateway.lookupFaults.push(...move.thenLookups);
    simulation.gateway.awayUntil = simulation.now + move.awayMs;
  } else if ('death' in move) simulation.deaths.push(move.death);
  else if ('finding' in move) simulation.settleReview(move.finding);
  else if ('confirmation' in move) {
    simulation.gateway.chargeFaults.unshift(move.confirmation);
    simulation.command('authenticatePayment', { checkoutSessionId: 'cs' });
  } else if ('waitMs' in move) simulation.runTo(simulation.now + move.waitMs);
  else if ('waitFor' in move) runToNext(simulation);
  else if ('cancel' in move) {
    const fields =
      move.cancel === 'at_period_end'
        ? ({ reason: 'cancelled', atPeriodEnd: true } as const)
        : { reason: move.cancel };
    simulation.command('cancel', fields);
  } else if ('pauseForMs' in move) {
    simulation.command('pause', { resumeAt: simulation.now + move.pauseForMs });
  } else if ('unpauseInMs' in move) {
    simulation.command('unpause', { newNextPaymentAt: simulation.now + move.unpauseInMs });
  } else if ('edit' in move) {
    const newDate = move.inMs === undefined ? {} : { newNextPaymentAt: simulation.now + move.inMs };
    simulation.command('edit', { ...move.edit, ...newDate });
  } else simulation.command(move.command, { ...TOKEN });
}

function begin(simulation: LifeInDoubt, start: Start): void {
  if (start !== 'created') simulation.pay();
  if (start === 'created' || start === 'paid') return;
  const card = start === 'owing' ? 'card_declined' : ASKS_PAYER;
  simulation.gateway.chargeFaults.push({ ...DECLINED, card });
  runToNext(simulation);
}

function runToNext(simulation: LifeInDoubt): void {
  simulation.runTo(Math.max(simulation.now, wakeAt(simulation.state) ?? simulation.now));
}

const of = fc.constantFrom;
const intervals = of<IntervalUnit>('DAY', 'WEEK', 'MONTH', 'YEAR');
const daysMs = fc.integer({ min: 1, max: 90 * DAY });
const hoursMs = fc.oneof(of(4 * HOUR, 20 * HOUR, 25 * HOUR), fc.integer({ min: 0, max: 6 * HOUR }));
const secondsMs = fc.oneof(of(0, 1, 10_000), fc.integer({ min: 0, max: 90_000 }));

const chargeFault: fc.Arbitrary<ChargeFault> = fc.record({
  line: of('clear', 'clear', 'clear', 'answer_lost', 'request_lost', 'late', 'late', 'rejected'),
  card: of('good', 'good', 'card_declined', 'card_declined', HARD, ASKS_PAYER),
  lateMs: fc.oneof(secondsMs, hoursMs, fc.integer({ min: 0, max: 3 * DAY })),
});

const chargeFaults = fc.array(chargeFault, { minLength: 1, maxLength: 3 });
const NONE: LookupFault[] = [];
const lookups = of(NONE, NONE, NONE, ['unanswered'], ['rejected'], ['rejected', 'rejected']);
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
  [4, of<Move>({ command: 'authenticatePayment' })],
  [4, chargeFault.map((confirmation) => ({ confirmation }))],
  [2, of<Move>({ command: 'pause' })],
  [2, fc.oneof(hoursMs, daysMs).map((pauseForMs) => ({ pauseForMs }))],
  [4, of<Move>({ cancel: 'at_period_end' }, { command: 'resume' }, { command: 'resume' })],
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

const scenarios = fc.record({
  terms,
  jitterMs: of(0, 1, 30 * 60_000, JITTER_WINDOW_MAX_MS),
  afterExhausted: of('stay_unpaid', 'stay_unpaid', 'end'),
  unpaidFrom: of('first_decline', 'retries_exhausted'),
  sequence: fc.array(moves, { minLength: 1, maxLength: 24, size: 'max' }),
  /** The state of the subscription before the first move. */
  start: of<Start>('created', 'paid', 'paid', 'paid', 'owing', 'owing', 'owing a confirmation'),
});

/** The names of the invariants that the subscription violates. */
function violatedRules(simulation: LifeInDoubt): string[] {
  const { state } = simulation;
  const isEnded = state.status === 'ENDED';
  const hasNext = ['TRIALING', 'ACTIVE', 'UNPAID'].includes(state.status);
  const charged = simulation.events.filter((type) => type === 'subscription.cycle_charged').length;
  // An UNPAID subscription without a next retry must have one of the three reasons below.
  const isStuck =
    state.status === 'UNPAID' && state.openAttempt === null && state.owed?.nextRetryAt === null;
  const plan = state.owed?.retryPlan?.delaysMs.length ?? Infinity;
  const hasReason =
    state.owed?.retriesStopped === true ||
    (state.owed?.retriesUsed ?? 0) >= plan ||
    (state.owed?.automaticAttemptsAt.length ?? 0) >= 15;
  const rules = {
    'the recorded state can be read': stateProblem(state) === null,
    'every charged cycle has an event': state.cyclesCharged === charged,
    'remaining cycles are total minus charged':
      remainingCycleCount(state) === state.terms.cycleCount - state.cyclesCharged,
    'charged cycles do not exceed the total': state.cyclesCharged <= state.terms.cycleCount,
    'a subscription with all cycles paid is ENDED':
      isEnded || state.cyclesCharged < state.terms.cycleCount,
    'exactly an ENDED subscription has an end reason': (state.endReason !== null) === isEnded,
    'the owed cycle is the next one':
      state.owed === null || state.owed.cycleNumber === state.cyclesCharged + 1,
    'an open attempt belongs to an owed cycle': state.openAttempt === null || state.owed !== null,
    'UNPAID has an owed cycle': state.status !== 'UNPAID' || state.owed !== null,
    'three requested upcoming charges are at most three':
      upcomingCharges(state, 3, simulation.now).length <= 3,
    'the description names the status': simulation.words.includes(`**${state.status}**`),
    'only TRIALING, ACTIVE and UNPAID have a next date': hasNext || nextPaymentAt(state) === null,
    'a date that was set is the next payment date':
      !['TRIALING', 'ACTIVE'].includes(state.status) ||
      // A charge whose outcome was unknown at the edit was declined; its retry comes first.
      nextRetryAt(state) !== null ||
      cancelAt(state) !== null ||
      simulation.now >= simulation.setDateAt ||
      nextPaymentAt(state) === simulation.setDateAt,
    'ENDED without an open attempt has no wake-up':
      !isEnded || state.openAttempt !== null || wakeAt(state) === null,
    'UNPAID without a next retry has a reason': !isStuck || hasReason,
  };
  return Object.entries(rules).flatMap(([rule, holds]) => (holds ? [] : [rule]));
}

/** Checks the final state in one assertion, because the test makes this check 10,000 times. */
function expectRest(simulation: LifeInDoubt): void {
  const { state, gateway, rows, cancelledAt } = simulation;
  const entries = [...gateway.book.values()].map((entry) => ({
    ...entry,
    row: rows.get(entry.key),
  }));
  const charged = entries.filter(({ outcome }) => outcome === 'charged');
  const kept = charged.filter(({ isGivenBack }) => !isGivenBack);
  const transitions = simulation.statuses
    .slice(1)
    .map((to, n) => `${simulation.statuses[n]}>${to}`);
  const isAtRest = ['UNPAID', 'PAUSED', 'ENDED'].includes(state.status);
  expect({
    violated: violatedRules(simulation),
    undecided: isAtRest ? state.openAttempt : state.status,
    unknownTransitions: transitions.filter((one) => !TRANSITIONS.includes(one)),
    // The charges that were not refunded: each cycle once, in order, with the amount owed on its due date.
    kept: kept.map(({ row, amountMinor }) => [row?.cycleNumber, amountMinor]),
    // A charge is booked as paid, and a refunded charge as declined.
    misbooked: charged.filter(
      ({ row, isGivenBack }) => row?.state !== (isGivenBack ? 'DECLINED' : 'SUCCEEDED'),
    ),
    succeeded: [...rows.values()].filter((row) => row.state === 'SUCCEEDED').length,
    // No charge is first sent after a cancel.
    sentTooLate: entries.filter(
      ({ row }) => cancelledAt !== null && (row?.firstSentAt ?? Infinity) > cancelledAt,
    ),
    fromLedger: ledgerProblems(state, simulation.entries, simulation.opened),
    // The state survives JSON, because it is the argument of continue-as-new.
    state: JSON.parse(JSON.stringify(state)) as unknown,
  }).toEqual({
    violated: [],
    undecided: null,
    unknownTransitions: [],
    kept: Array.from({ length: state.cyclesCharged }, (_, n) => [
      n + 1,
      simulation.owedMinor.get(n + 1),
    ]),
    misbooked: [],
    succeeded: kept.length,
    sentTooLate: [],
    fromLedger: [],
    state,
  });
}

/** The situations that the random sequences must cover. */
const SITUATIONS = [
  ...['sent', 'in review'].flatMap((phase) => [
    ...'cancel pause unpause replacePaymentMethod'
      .split(' ')
      .flatMap((what) => [`${what} accepted while ${phase}`, `${what} refused while ${phase}`]),
    ...['amount', 'date', 'interval', 'count'].map(
      (of) => `edit of the ${of} accepted while ${phase}`,
    ),
    ...['manualRetry', 'completeCheckout', 'edit of the amount'].map(
      (what) => `${what} refused while ${phase}`,
    ),
    `cancel at the end of the period accepted while ${phase}`,
  ]),
  'resume accepted while sent',
  'cancel accepted while unsent',
  ...'checkout scheduled automatic_retry manual_retry new_method authentication'
    .split(' ')
    .flatMap((trigger) =>
      ['succeeded', 'declined', 'unknown', 'review'].map((outcome) => `${trigger} ${outcome}`),
    ),
  'authenticatePayment refused while sent',
  ...['UNPAID', 'PAUSED', 'ENDED', 'new method'].map((why) => `withdrawn from the payer, ${why}`),
  ...['PAUSED', 'ENDED'].flatMap((status) => [
    `succeeded while ${status}`,
    `declined while ${status}`,
    `voided before it was sent, ${status}`,
    `voided after it was sent, ${status}`,
  ]),
  ...['TRIALING', 'ACTIVE', 'UNPAID'].map((status) => `voided after it was sent, ${status}`),
  'sent again under its key',
  'arrived after nothing was found',
  'arrived after it was sent again',
  'refunded after it was voided',
  'review: rejected',
  'review: asked for 24 h',
  'a person says paid',
  'a person says declined',
  'a person says not_charged',
  'a person says not_charged, wrongly',
  "the gateway's answer overrode the person's",
  'refunded after a person said no',
];

describe('any sequence of commands, delays, faults and review decisions', () => {
  test('stays within the transitions of D-§4 and charges every cycle at most once [D-§4, D-15, D-31, D-32, D-40, IF-2.3]', () => {
    const seen = new Map<string, number>();
    fc.assert(
      fc.property(fc.noBias(scenarios), ({ terms, jitterMs, sequence, start, ...plans }) => {
        const plan = { ...DEFAULT_RETRY_PLAN, ...plans };
        const simulation = new LifeInDoubt('2026-01-31T00:00:00Z', terms, plan, jitterMs);
        simulation.seen = seen;
        begin(simulation, start);
        for (const move of sequence) {
          make(simulation, move);
          const violated = violatedRules(simulation);
          if (violated.length > 0) throw new Error(violated.join(', '));
        }
        simulation.comeToRest();
        expectRest(simulation);
      }),
      { numRuns: 10_000 },
    );
    expect(SITUATIONS.filter((what) => !seen.has(what))).toEqual([]);
  });
});
