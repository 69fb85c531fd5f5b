import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { wakeAt } from '../../domain/subscription/decide.ts';
import { describe as inWords } from '../../domain/subscription/describe.ts';
import { nextPaymentAt, remainingCycleCount } from '../../domain/subscription/state.ts';
import type { Terms } from '../../domain/subscription/state.ts';
import { upcomingCharges } from '../../domain/subscription/upcoming.ts';
import { JITTER_WINDOW_MAX_MS } from '../../domain/subscription/jitter.ts';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import { DAY, HOUR, Simulation } from '../support/simulation.ts';
import type { Reply } from '../support/simulation.ts';

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

type Action = (life: Simulation) => void;

const replies: fc.Arbitrary<Reply[]> = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.constant<Reply>({ kind: 'succeeded' }) },
    { weight: 3, arbitrary: fc.constant<Reply>({ kind: 'declined', code: 'card_declined' }) },
    { weight: 1, arbitrary: fc.constant<Reply>({ kind: 'declined', code: 'stolen_card' }) },
    { weight: 2, arbitrary: fc.constant<Reply>({ kind: 'unknown' }) },
    { weight: 1, arbitrary: fc.constant<Reply>({ kind: 'review', reason: 'nobody knows' }) },
  ),
  { maxLength: 4 },
);

const aheadMs = fc.integer({ min: 1, max: 90 * DAY });
const token = { paymentToken: 'ptk', checkoutSessionId: 'cs' };

const action: fc.Arbitrary<Action> = fc.oneof(
  replies.map(
    (next): Action =>
      (life) =>
        void life.replies.push(...next),
  ),
  aheadMs.map(
    (ms): Action =>
      (life) =>
        life.runTo(life.now + ms),
  ),
  fc.integer({ min: 0, max: 5 * HOUR }).map(
    (ms): Action =>
      (life) =>
        life.runTo(life.now + ms),
  ),
  fc.constant<Action>((life) => void life.command('completeCheckout', token)),
  fc.constant<Action>((life) => void life.command('replacePaymentMethod', token)),
  fc.constant<Action>((life) => void life.command('manualRetry', {})),
  fc.constant<Action>((life) => void life.command('pause', {})),
  aheadMs.map((ms): Action => (life) => {
    life.command('unpause', { newNextPaymentAt: life.now + ms });
  }),
  aheadMs.map((ms): Action => (life) => {
    life.command('edit', { newNextPaymentAt: life.now + ms });
  }),
  fc.integer({ min: 101, max: 9_999 }).map((amount): Action => (life) => {
    life.command('edit', { newAmountMinor: amount });
  }),
  fc.integer({ min: 1, max: 8 }).map((count): Action => (life) => {
    life.command('edit', { newCycleCount: count });
  }),
  fc
    .tuple(fc.constantFrom('DAY', 'WEEK', 'MONTH', 'YEAR'), aheadMs)
    .map(([interval, ms]): Action => (life) => {
      life.command('edit', { interval, intervalCount: 2, newNextPaymentAt: life.now + ms });
    }),
);
const cancel: Action = (life) => void life.command('cancel', { reason: 'cancelled' });
const actions = fc.array(fc.oneof({ weight: 40, arbitrary: action }, fc.constant(cancel)), {
  minLength: 1,
  maxLength: 25,
});

const jitter = fc.constantFrom(0, 1, 30 * 60_000, JITTER_WINDOW_MAX_MS);

const terms: fc.Arbitrary<Partial<Terms>> = fc.record({
  cycleCount: fc.integer({ min: 1, max: 5 }),
  interval: fc.constantFrom('DAY', 'WEEK', 'MONTH', 'YEAR'),
  trial: fc.constantFrom(null, { interval: 'DAY' as const, count: 3 }),
  upfrontAmountMinor: fc.constantFrom(null, 150),
});

/** What must be true of any subscription, at any time. */
function check(life: Simulation): void {
  const { state } = life;
  for (const [from, to] of life.statuses.slice(1).map((to, i) => [life.statuses[i], to])) {
    expect(ARROWS).toContain(`${from}>${to}`);
  }
  // JSON carries it whole: it is the argument of continue-as-new.
  expect(JSON.parse(JSON.stringify(state))).toEqual(state);
  expect(state.cyclesCharged).toBe(
    life.events.filter((type) => type === 'subscription.cycle_charged').length,
  );
  expect(state.cyclesCharged).toBeLessThanOrEqual(state.terms.cycleCount);
  expect(remainingCycleCount(state)).toBe(state.terms.cycleCount - state.cyclesCharged);
  expect(state.endReason !== null).toBe(state.status === 'ENDED');
  const isOver = state.status === 'ENDED';
  const isAllPaid = state.cyclesCharged === state.terms.cycleCount;
  expect(isAllPaid && !isOver).toBe(false);
  expect(state.owed?.cycleNumber ?? state.cyclesCharged + 1).toBe(state.cyclesCharged + 1);
  expect(state.openAttempt !== null && state.owed === null).toBe(false);
  expect(state.status === 'UNPAID' && state.owed === null).toBe(false);
  // Everything that is read from a state can be, whatever it is.
  expect(upcomingCharges(state, 3).length).toBeLessThanOrEqual(3);
  expect(inWords(state)).toContain(`**${state.status}**`);
  const hasNext = ['TRIALING', 'ACTIVE', 'UNPAID'].includes(state.status);
  expect(nextPaymentAt(state) !== null && !hasNext).toBe(false);
  expect(isOver && state.openAttempt === null && wakeAt(state) !== null).toBe(false);
  // Nothing waits for ever: a cycle is owed without a plan only for a reason.
  const isStuck =
    state.status === 'UNPAID' && state.openAttempt === null && state.owed?.nextRetryAt === null;
  const plan = state.owed?.retryPlan?.delaysMs.length ?? Infinity;
  const hasReason =
    state.owed?.retriesStopped === true ||
    (state.owed?.retriesUsed ?? 0) >= plan ||
    (state.owed?.automaticAttemptsAt.length ?? 0) >= 15;
  expect(isStuck && !hasReason).toBe(false);
}

/** Nothing is ever sent twice under two keys while one is open, nor out of the order of cycles. */
function checkSends(life: Simulation): void {
  const keys = life.sends.map((send) => send.key);
  expect(new Set(keys).size).toBe(keys.length);
  const cycles = life.sends.map((send) => send.cycleNumber);
  expect(cycles).toEqual(cycles.toSorted((a, b) => a - b));
  // Never before its date, and by the calendar only a fixed while after it.
  const { jitterMs = 0 } = life.state;
  const early = life.sends.filter(
    ({ trigger, at, dueAt }) => at < (trigger === 'scheduled' ? dueAt + jitterMs : dueAt),
  );
  expect(early).toEqual([]);
  // A cycle keeps its amount, whatever is edited meanwhile.
  const amounts = new Map<number, number>();
  for (const { cycleNumber, amountMinor } of life.sends) {
    expect(amounts.get(cycleNumber) ?? amountMinor).toBe(amountMinor);
    amounts.set(cycleNumber, amountMinor);
  }
}

describe('any sequence of commands, times and outcomes', () => {
  test('stays within the table of D-§4 and charges every cycle at most once [D-§4]', () => {
    fc.assert(
      fc.property(terms, jitter, actions, (given, jitterMs, sequence) => {
        const life = new Simulation('2026-01-31T00:00:00Z', given, DEFAULT_RETRY_PLAN, jitterMs);
        for (const act of sequence) {
          act(life);
          check(life);
        }
        checkSends(life);
      }),
      { numRuns: 10_000 },
    );
  });

  test('comes to rest: once nothing fails any more, every attempt has an outcome [D-40]', () => {
    fc.assert(
      fc.property(terms, jitter, actions, (given, jitterMs, sequence) => {
        const life = new Simulation('2026-01-31T00:00:00Z', given, DEFAULT_RETRY_PLAN, jitterMs);
        for (const act of sequence) act(life);
        life.replies.length = 0;
        life.runTo(life.now + 60 * 365 * DAY);
        check(life);
        expect(life.state.openAttempt).toBeNull();
        expect(['UNPAID', 'PAUSED', 'ENDED']).toContain(life.state.status);
      }),
      { numRuns: 2_000 },
    );
  });
});
