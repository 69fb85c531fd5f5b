import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  afterAttempt,
  CLOSED_BREAKER,
  firstWindow,
  isOpen,
  isPaused,
  widerWindow,
} from '../../domain/endpoint-breaker.ts';
import type { Breaker } from '../../domain/endpoint-breaker.ts';

const AT = Date.UTC(2027, 0, 31, 12);
const failure = (at: number, jitter = 0.5) => ({ kind: 'failure', at, jitter }) as const;
const success = { kind: 'success' } as const;

const after = (...outcomes: Parameters<typeof afterAttempt>[1][]): Breaker =>
  outcomes.reduce(afterAttempt, CLOSED_BREAKER);

describe('a circuit breaker', () => {
  it('opens at the fifth consecutive failure and pauses the endpoint for 5 s [D-54]', () => {
    const four = after(failure(AT), failure(AT + 1), failure(AT + 2), failure(AT + 3));
    expect(four).toEqual({ consecutiveFailures: 4, pausedUntil: AT + 3, failingSince: AT });
    expect([isOpen(four), isPaused(four, AT + 2)]).toEqual([false, false]);
    const five = afterAttempt(four, failure(AT + 4));
    expect(five).toEqual({
      consecutiveFailures: 5,
      pausedUntil: AT + 4 + 5_000,
      failingSince: AT,
    });
    expect(isOpen(five)).toBe(true);
    expect(isPaused(five, AT + 5_003)).toBe(true);
    expect(isPaused(five, AT + 5_004)).toBe(false);
  });

  it('waits 5, 10, 20 and 40 s before the first four probes and 60 s before every later probe [D-54]', () => {
    let at = AT;
    let breaker = after(...Array.from({ length: 4 }, () => failure(AT)));
    const waits = Array.from({ length: 7 }, () => {
      breaker = afterAttempt(breaker, failure(at));
      const wait = (breaker.pausedUntil ?? Number.NaN) - at;
      at += wait;
      return wait;
    });
    expect(waits).toEqual([5_000, 10_000, 20_000, 40_000, 60_000, 60_000, 60_000]);
    expect(breaker.failingSince).toBe(AT);
  });

  it.each([
    ['open', 5, 5_000],
    ['closed', 3, 0],
  ])(
    'counts five days of failures from the first failure after 30 h without an attempt when it is %s [D-54]',
    (_state, failures, pauseMs) => {
      const failing = after(...Array.from({ length: failures }, () => failure(AT)));
      const quietAt = AT + pauseMs + 30 * 3_600_000;
      expect(afterAttempt(failing, failure(quietAt)).failingSince).toBe(AT);
      expect(afterAttempt(failing, failure(quietAt + 1)).failingSince).toBe(quietAt + 1);
    },
  );

  it('changes a wait by a jitter of at most 20 % in either direction [D-54]', () => {
    const opened = (jitter: number) =>
      after(...Array.from({ length: 5 }, () => failure(AT, jitter))).pausedUntil;
    expect(opened(0)).toBe(AT + 4_000);
    expect(opened(1)).toBe(AT + 6_000);
  });

  it('ignores failures of requests that were in flight when it opened [D-54]', () => {
    const opened = after(...Array.from({ length: 5 }, () => failure(AT)));
    expect(afterAttempt(opened, failure(AT + 4_999))).toEqual(opened);
    expect(afterAttempt(opened, failure(AT + 5_000)).pausedUntil).toBe(AT + 15_000);
  });

  it('closes on one success after any number of failures [D-54]', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(10 * 60_000), { maxLength: 40 }), (times) => {
        const outcomes = times.map((time) => failure(AT + time));
        expect(after(...outcomes, success)).toEqual(CLOSED_BREAKER);
      }),
    );
  });

  it('counts at most one failed request per wait and never waits longer than 72 s [D-54]', () => {
    const gaps = fc.array(fc.tuple(fc.nat(90_000), fc.double({ min: 0, max: 1, noNaN: true })), {
      minLength: 5,
      maxLength: 60,
    });
    fc.assert(
      fc.property(gaps, (steps) => {
        let at = AT;
        let breaker = CLOSED_BREAKER;
        for (const [gap, jitter] of steps) {
          at += gap;
          const before = breaker;
          breaker = afterAttempt(breaker, failure(at, jitter));
          const counted = breaker.consecutiveFailures - before.consecutiveFailures;
          expect(counted).toBe(isPaused(before, at) ? 0 : 1);
          expect((breaker.pausedUntil ?? at) - at).toBeLessThanOrEqual(72_000);
          expect(isOpen(breaker)).toBe(isPaused(breaker, at));
          expect(breaker.failingSince).toBe(AT + (steps[0]?.[0] ?? 0));
        }
      }),
    );
  });
});

describe('the delivery window of a drain', () => {
  it('starts at one request if the breaker is open, and doubles with successes up to eight [D-54]', () => {
    expect(firstWindow(CLOSED_BREAKER)).toBe(8);
    expect(firstWindow(after(...Array.from({ length: 5 }, () => failure(AT))))).toBe(1);
    expect([1, 2, 4, 8].map(widerWindow)).toEqual([2, 4, 8, 8]);
  });
});
