import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ledgerProblems } from '../../cli/verify/ledger-check.ts';
import { DEFAULT_CARD_LIMITS, limitReached, limitText } from '../../domain/card-limits.ts';
import type { CardLimits } from '../../domain/card-limits.ts';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import type { RetryPlan } from '../../domain/retry-plan.ts';
import { causeText } from '../../domain/subscription/charge-cause.ts';
import { decide } from '../../domain/subscription/decide.ts';
import type { Terms } from '../../domain/subscription/terms.ts';
import {
  at,
  DAY,
  declined,
  declines,
  expectNothingFurther,
  HOUR,
  iso,
  Simulation,
} from '../support/simulation.ts';
import type { Reply } from '../support/simulation.ts';

const NOW = at('2027-03-01');
const hoursAgo = (...hours: number[]) => hours.map((count) => NOW - count * HOUR);
const until = (declinedAt: number[], limits = DEFAULT_CARD_LIMITS, undecided = 0) => {
  const limit = limitReached({ declinedAt, undecided }, limits, NOW);
  return limit && `${iso(limit.untilAt)}: ${limit.attempts} in ${limit.hours} h`;
};

describe('the limits of a card', () => {
  test('allow the tenth unpaid attempt in 24 h, and the next when the oldest of them is 24 h old [D-30]', () => {
    expect(until([])).toBeNull();
    expect(until(hoursAgo(1, 2, 3, 4, 5, 6, 7, 8, 9))).toBeNull();
    expect(until(hoursAgo(1, 2, 3, 4, 5, 6, 7, 8, 9, 10))).toBe('2027-03-01T14:00: 10 in 24 h');
    expect(until(hoursAgo(1, 2, 3, 4, 5, 6, 7, 8, 9, 24))).toBeNull();
  });

  test('allow the fifteenth unpaid attempt in 30 days, and name the later of two instants [D-30]', () => {
    const fifteen = Array.from({ length: 15 }, (_, n) => n * 24 + 24);
    expect(until(hoursAgo(...fifteen.slice(0, 14)))).toBeNull();
    expect(until(hoursAgo(...fifteen))).toBe('2027-03-16: 15 in 720 h');
    const both = { perDay: 1, per30Days: 2 };
    expect(until(hoursAgo(1, 2), both)).toBe('2027-03-30T22:00: 2 in 720 h');
  });

  test('count an undecided attempt as unpaid, and ask again after 5 min if only such keep the next one back [D-30]', () => {
    expect(until([], DEFAULT_CARD_LIMITS, 9)).toBeNull();
    expect(until([], DEFAULT_CARD_LIMITS, 10)).toBe('2027-03-01T00:05: 10 in 24 h');
    expect(until(hoursAgo(1), DEFAULT_CARD_LIMITS, 8)).toBeNull();
    expect(until(hoursAgo(1), DEFAULT_CARD_LIMITS, 9)).toBe('2027-03-01T00:05: 10 in 24 h');
    expect(until(hoursAgo(30, 40), { perDay: 1, per30Days: 2 }, 1)).toBe(
      '2027-03-29T08:00: 2 in 720 h',
    );
  });
});

/** Monthly lives whose payers have given the same card. */
function onOneCard(starts: string[], limits: CardLimits, terms: Partial<Terms>, plan?: RetryPlan) {
  const lives = starts.map((start) => {
    const life = new Simulation(start, terms, plan);
    life.pay();
    return life;
  });
  const card = { limits, attemptsAt: [] };
  for (const life of lives) life.card = card;
  return lives;
}

/** Runs the lives to `end`, step by step in the order of their instants. */
function runAll(lives: readonly Simulation[], end: number): void {
  for (let steps = 0; steps < 20_000; steps += 1) {
    const next = lives
      .flatMap((life) => {
        const step = decide(life.state, life.now, life.now);
        const due = step.do === 'wait' ? step.until : step.do === 'finish' ? null : life.now;
        return due === null || due > end ? [] : [{ life, due }];
      })
      .toSorted((one, other) => one.due - other.due)[0];
    if (!next) return;
    next.life.runTo(next.due);
  }
  throw new Error('the lives do not end');
}

test('the text of a limit says how many attempts, and in which time', () => {
  expect(limitText({ attempts: 1, hours: 24 })).toBe(
    'its card has 1 unpaid attempt in 24 h, the most allowed',
  );
  expect(limitText({ attempts: 15, hours: 720 })).toBe(
    'its card has 15 unpaid attempts in 30 days, the most allowed',
  );
});

describe('a subscription whose card has reached a limit', () => {
  test('waits with a renewal until the oldest attempt of another one is 24 h old, and says why [D-30]', () => {
    const limits = { perDay: 2, per30Days: 15 };
    const terms = { cycleCount: 3 };
    const [first, second] = onOneCard(['2027-01-31', '2027-01-31T06:00Z'], limits, terms);
    // At 00:00 and 04:00 of 28 February.
    first!.gives(...declines(2));
    runAll([first!, second!], at('2027-02-28T06:00Z'));
    expect(second!.state).toMatchObject({ status: 'ACTIVE', openAttempt: null });
    expect(second!.nextAt).toBe('2027-03-01');
    expect(second!.upcoming(2)).toBe('2027-03-01 2 1999, 2027-03-31T06:00 3 1999');
    expect(second!.words).toContain('the next charge is cycle 2, 19.99 USD on 2027-03-01 00:00');
    runAll([first!, second!], at('2027-04-01'));
    expect(first!.sent).toBe(
      '2027-01-31 1, 2027-02-28 2, 2027-02-28T04:00 2 automatic_retry, ' +
        '2027-03-01 2 automatic_retry, 2027-03-31 3',
    );
    expect(second!.sent).toBe(
      '2027-01-31T06:00 1, 2027-03-01 2 automatic_retry, 2027-03-31T06:00 3',
    );
    const because = 'its card has 2 unpaid attempts in 24 h, the most allowed';
    expect(second!.log.map(({ what, why }) => `${what}: ${why}`)).toEqual([
      'created: the merchant asked for it',
      'cycle 1 paid, 19.99 USD: the payer gave a card in the checkout (attempt 1)',
      `cycle 2 waits until 2027-03-01T00:00:00.000Z: ${because}`,
      'cycle 2 paid, 19.99 USD: the limit of its card allowed it (attempt 1)',
      'cycle 3 paid, 19.99 USD: its date had come (attempt 1)',
    ]);
    const { cause, trigger } = second!.opened[1]!;
    expect(cause && causeText(cause, trigger)).toBe(
      `it had to wait until 2027-03-01T00:00:00.000Z: ${because}`,
    );
    expect(second!.news).toBe(
      'intent.success, cycle_charged, active, intent.success, cycle_charged, ' +
        'intent.success, cycle_charged, ended',
    );
    for (const life of [first!, second!]) {
      expect(ledgerProblems(life.state, life.entries, life.opened)).toEqual([]);
      expectNothingFurther(life);
    }
  });

  test('refuses a manual retry with the instant, and charges another card at once [D-30, IF-4.9]', () => {
    const limits = { perDay: 2, per30Days: 15 };
    const [life] = onOneCard(['2027-01-31'], limits, { cycleCount: 3 });
    life!.gives(...declines(2));
    life!.runTo('2027-02-28T05:00Z');
    expect(life!.retry().decision).toEqual({
      ok: false,
      code: 'bad_request',
      message:
        'No charge is possible before 2027-03-01T00:00:00.000Z: its card has 2 unpaid attempts in 24 h, the most allowed.',
      retryAt: at('2027-03-01'),
    });
    life!.newCard();
    expect(life!.sent.split(', ').at(-1)).toBe('2027-02-28T05:00 2 new_method');
    expect(life!.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  });

  test('charges another card at once, also if it waits in ACTIVE [D-30, D-33]', () => {
    const limits = { perDay: 2, per30Days: 2 };
    const [first, second] = onOneCard(['2027-01-31', '2027-01-31T06:00Z'], limits, {});
    first!.gives(...declines(2));
    runAll([first!, second!], at('2027-03-02'));
    expect(second!.nextAt).toBe('2027-03-30');
    second!.runTo('2027-03-02');
    second!.newCard();
    expect(second!.sent).toBe('2027-01-31T06:00 1, 2027-03-02 2 new_method');
    expect(second!.nextAt).toBe('2027-03-31T06:00');
    expect(ledgerProblems(second!.state, second!.entries, second!.opened)).toEqual([]);
  });
});

const advised: fc.Arbitrary<Reply> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Reply>(declined()) },
  { weight: 3, arbitrary: fc.constant<Reply>({ kind: 'succeeded' }) },
  { weight: 1, arbitrary: fc.constant<Reply>(declined('lost_card')) },
  {
    weight: 2,
    arbitrary: fc.integer({ min: 1, max: 40 }).map<Reply>((days) => ({
      ...declined(),
      advice: { kind: 'not_before', at: at('2027-02-01') + days * 3 * DAY },
    })),
  },
);

test('two to four subscriptions on one card never pass a limit, and each cycle is paid, waits until a named instant, or has a named reason [D-30]', () => {
  let limited = 0;
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 50 }), { minLength: 2, maxLength: 4 }),
      fc.record({
        perDay: fc.integer({ min: 1, max: 10 }),
        per30Days: fc.integer({ min: 1, max: 15 }),
      }),
      fc.array(advised, { minLength: 60, maxLength: 60 }),
      fc.integer({ min: 30, max: 26 * 60 }),
      (hours, limits, replies, minutes) => {
        const starts = hours.map((hour) => new Date(at('2027-01-01') + hour * HOUR).toISOString());
        const delaysMs = Array.from({ length: 14 }, () => minutes * 60_000);
        const plan = { ...DEFAULT_RETRY_PLAN, delaysMs };
        const lives = onOneCard(starts, limits, { cycleCount: 6 }, plan);
        const card = lives[0]!.card!;
        for (const life of lives) life.replies.push(...replies);
        runAll(lives, at('2027-08-01'));
        const { attemptsAt } = card;
        for (const [index, attemptAt] of attemptsAt.entries()) {
          const after = attemptsAt.slice(0, index + 1);
          const within = (ms: number) => after.filter((one) => one - attemptAt < ms).length;
          expect(within(DAY)).toBeLessThanOrEqual(limits.perDay);
          expect(within(30 * DAY)).toBeLessThanOrEqual(limits.per30Days);
        }
        for (const life of lives) {
          const { owed, status } = life.state;
          const isOver = status === 'ENDED' || owed === null;
          const isPlanned = owed?.nextRetryAt !== null || owed.retriesStopped;
          // The bank's date may have added one retry to the plan.
          const retries = [delaysMs.length, delaysMs.length + 1];
          expect(isOver || isPlanned || retries.includes(owed.retriesUsed)).toBe(true);
          limited += life.entries.filter(({ kind }) => kind === 'limited').length;
          expect(ledgerProblems(life.state, life.entries, life.opened)).toEqual([]);
        }
      },
    ),
    { numRuns: 150 },
  );
  // If few runs reach a limit, the property proves nothing.
  expect(limited).toBeGreaterThan(150);
});
