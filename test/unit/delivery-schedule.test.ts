import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ATTEMPT_DELAYS_MS,
  deactivationAfterFailure,
  delayAfterFailure,
  holdsBackLaterEvents,
  parseRetryAfter,
} from '../../domain/delivery-schedule.ts';

const NOW_AT = Date.UTC(2026, 10, 20, 12, 0, 0);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const delayAfter = (attempts: number, jitter = 0.5, retryAfterMs: number | null = null) =>
  delayAfterFailure({ attempts, jitter, retryAfterMs });

describe('delivery schedule', () => {
  it('makes ten attempts, after delays of 0, 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h [D-54]', () => {
    expect(ATTEMPT_DELAYS_MS).toEqual([
      0, 5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 50_400_000, 72_000_000,
      86_400_000,
    ]);
    expect(Array.from({ length: 10 }, (_, failed) => delayAfter(failed + 1))).toEqual([
      ...ATTEMPT_DELAYS_MS.slice(1),
      null,
    ]);
  });

  it('changes a delay by a jitter of at most 20 % in either direction [D-54]', () => {
    expect([delayAfter(1, 0), delayAfter(1, 1)]).toEqual([4_000, 6_000]);
    expect([delayAfter(9, 0), delayAfter(9, 1)]).toEqual([69_120_000, 103_680_000]);
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (attempts, jitter) => {
          const base = ATTEMPT_DELAYS_MS[attempts] ?? Number.NaN;
          const delay = delayAfter(attempts, jitter) ?? Number.NaN;
          expect(Number.isInteger(delay)).toBe(true);
          expect(delay).toBeGreaterThanOrEqual(base * 0.8);
          expect(delay).toBeLessThanOrEqual(base * 1.2);
        },
      ),
    );
  });

  it('lengthens a delay to Retry-After, up to 24 h, and never shortens it [D-54]', () => {
    expect(delayAfter(1, 0.5, 60_000)).toBe(60_000);
    expect(delayAfter(2, 0.5, 60_000)).toBe(300_000);
    expect(delayAfter(1, 0.5, 90 * HOUR_MS)).toBe(DAY_MS);
    expect(delayAfter(10, 0.5, 60_000)).toBeNull();
  });

  it.each([
    ['whole seconds', '120', 120_000],
    ['seconds between spaces', ' 7 ', 7_000],
    ['an HTTP date', 'Fri, 20 Nov 2026 12:00:30 GMT', 30_000],
    ['a date in the past', 'Fri, 20 Nov 2026 11:59:30 GMT', null],
    ['zero', '0', null],
    ['a fraction', '1.5', null],
    ['a negative number', '-5', null],
    ['an ISO date', '2026-11-20T12:00:30Z', null],
    ['words', 'soon', null],
    ['an empty header', '', null],
    ['no header', null, null],
  ])('reads a Retry-After of %s, %j, as %s ms; null is no wait [D-54]', (_, header, expected) => {
    expect(parseRetryAfter(header, NOW_AT)).toBe(expected);
  });

  it('holds back later events of the stream until three attempts have failed [D-54]', () => {
    const holds = [0, 1, 2, 3, 9].map((attempts) => holdsBackLaterEvents({ attempts }));
    expect(holds).toEqual([true, true, true, false, false]);
  });

  it('deactivates a webhook configuration on the first answer 410, or after five days without a success [D-54]', () => {
    const after = (failingForMs: number | null, httpStatus: number | null) =>
      deactivationAfterFailure({
        httpStatus,
        failingSinceAt: failingForMs === null ? null : NOW_AT - failingForMs,
        nowAt: NOW_AT,
      });
    expect(after(null, 410)).toBe('endpoint_gone');
    expect(after(null, 500)).toBeNull();
    expect(after(5 * DAY_MS - 1, 500)).toBeNull();
    expect(after(5 * DAY_MS, 500)).toBe('failing_for_five_days');
    expect(after(5 * DAY_MS, null)).toBe('failing_for_five_days');
  });
});
