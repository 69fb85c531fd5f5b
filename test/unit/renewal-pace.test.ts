import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RenewalPace } from '../../domain/subscription/renewal-pace.ts';
import { RenewalPlaces } from '../../domain/subscription/renewal-places.ts';
import type { SubscriptionState } from '../../domain/subscription/state.ts';
import { at } from '../support/simulation.ts';

const FIRST = at('2026-01-31T00:00Z');
const MONTH = 30 * 86_400_000;
const LIMITS = { start: 40, least: 10, most: Infinity };

interface Wave {
  /** Renewals a second, from the due time to the last charge. */
  readonly perSecond: number;
  /** The latest charge after its place, in s. */
  readonly latest: number;
}

/** A process that charges up to `canDo` renewals a second, each as soon as it can after its place. */
function processWith(pace: RenewalPace) {
  let dueAt = FIRST;
  const placesOf = (count: number): number[] => {
    const places = new RenewalPlaces(pace);
    const renewal = (n: number) =>
      ({ merchantId: 'mer_1', subscriptionId: `sub_${n}` }) as SubscriptionState;
    return Array.from({ length: count }, (_, n) => dueAt + places.take(dueAt, renewal(n))).toSorted(
      (one, other) => one - other,
    );
  };
  return (count: number, canDo: number): Wave => {
    let doneAt = dueAt;
    let latestMs = 0;
    for (const place of placesOf(count)) {
      doneAt = Math.max(place, doneAt) + 1_000 / canDo;
      latestMs = Math.max(latestMs, doneAt - place);
      pace.tried(doneAt - place, true, Math.round(doneAt));
    }
    const perSecond = Math.round((count * 1_000) / (doneAt - dueAt));
    dueAt += MONTH;
    return { perSecond, latest: Math.round(latestMs / 1_000) };
  };
}

describe('the pace of a process', () => {
  test('begins with a careful value, doubles until a wave is late, and then settles below what the process can do [D-59]', () => {
    const pace = new RenewalPace(LIMITS, null);
    const wave = processWith(pace);
    const waves = Array.from({ length: 10 }, () => wave(5_000, 100));
    expect(waves.map(({ perSecond }) => perSecond)).toEqual([
      39, 83, 100, 89, 100, 89, 100, 89, 100, 89,
    ]);
    expect(waves.map(({ latest }) => latest)).toEqual([2, 4, 5, 4, 6, 4, 6, 4, 6, 4]);
  });

  test('follows a process that becomes slower within one wave, and one that becomes faster within a few [D-59]', () => {
    const pace = new RenewalPace(LIMITS, 80);
    const wave = processWith(pace);
    expect([80, 40, 40, 40].map((canDo) => wave(5_000, canDo).perSecond)).toEqual([78, 40, 36, 40]);
    expect([80, 80, 80, 80, 80, 80].map((canDo) => wave(5_000, canDo).perSecond)).toEqual([
      36, 48, 63, 80, 70, 80,
    ]);
  });

  test('is not changed by a few late renewals, nor by one late hour without a wave [D-59]', () => {
    const pace = new RenewalPace(LIMITS, 80);
    for (let n = 0; n < 100; n += 1) pace.tried(600_000, true, FIRST + n * 1_000);
    for (let n = 0; n < 100; n += 1) pace.tried(600_000, true, FIRST + 1_000_000 + n * 60_000);
    expect(pace.perSecond).toBe(80);
  });

  test('falls to what the gateway takes, and is not changed by a gateway that takes nothing [D-59]', () => {
    const pace = new RenewalPace(LIMITS, 80);
    // The gateway decides every second of 80 a second, and nothing of the next wave.
    for (let n = 0; n < 3_200; n += 1) pace.tried(0, n % 2 === 0, FIRST + n * 12.5);
    expect(Math.round(pace.perSecond)).toBe(38);
    for (let n = 0; n < 3_200; n += 1) pace.tried(5_000, false, FIRST + MONTH + n * 12.5);
    expect(Math.round(pace.perSecond)).toBe(38);
  });

  test('stays between its limits [D-59]', () => {
    const slow = new RenewalPace(LIMITS, 12);
    processWith(slow)(2_000, 6);
    expect(slow.perSecond).toBe(10);
    const capped = new RenewalPace({ ...LIMITS, most: 20 }, 80);
    expect(processWith(capped)(2_000, 1_000).perSecond).toBe(20);
    expect(capped.perSecond).toBe(20);
  });

  test('is kept for the next process only after a late wave [D-59]', () => {
    const pace = new RenewalPace(LIMITS, null);
    const wave = processWith(pace);
    wave(1_000, 100);
    expect(pace.learned).toBeNull();
    wave(5_000, 50);
    expect(pace.learned).toBe(pace.perSecond);
  });
});

test('after twelve waves a process charges over 80 % of the renewals a second that it can, and none is later than a quarter of the time that the whole wave needs [D-59]', () => {
  fc.assert(
    fc.property(fc.integer({ min: 15, max: 120 }), fc.integer({ min: 60, max: 90 }), (canDo, s) => {
      const wave = processWith(new RenewalPace(LIMITS, null));
      const count = canDo * s;
      for (let n = 0; n < 12; n += 1) wave(count, canDo);
      for (let n = 0; n < 5; n += 1) {
        const { perSecond, latest } = wave(count, canDo);
        expect(perSecond / canDo).toBeGreaterThan(0.8);
        expect(latest).toBeLessThan(0.25 * s);
      }
    }),
    { numRuns: 10 },
  );
});
