import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RenewalPlaces, takePlace } from '../../domain/subscription/renewal-places.ts';
import { decide, wakeAt } from '../../domain/subscription/decide.ts';
import { initialJitter, nextPaymentAt } from '../../domain/subscription/state.ts';
import type { SubscriptionState } from '../../domain/subscription/state.ts';
import { at, iso, subscribed } from '../support/simulation.ts';

const DUE = at('2026-02-28T00:00Z');

/** A renewal of a merchant, as far as a place needs it. */
const renewal = (merchantId: string, number: number) =>
  ({ merchantId, subscriptionId: `sub_${number}` }) as SubscriptionState;

/** The delays in seconds of `count` renewals of one merchant that are due at one instant. */
const delays = (places: RenewalPlaces, merchantId: string, count: number, dueAt = DUE) =>
  Array.from({ length: count }, (_, n) => places.take(dueAt, renewal(merchantId, n)) / 1_000);

/** How many of the delays lie in each slot of 4 s. */
function bySlot(all: readonly number[]): number[] {
  const slots = Array.from({ length: Math.floor(Math.max(...all) / 4) + 1 }, () => 0);
  for (const delay of all) slots[Math.floor(delay / 4)]! += 1;
  return slots;
}

describe('renewals of one instant', () => {
  test('are not delayed while a slot of 4 s and the merchant’s own 20 have room [D-59]', () => {
    expect(delays(new RenewalPlaces(50), 'mer_1', 220)).toEqual(Array(220).fill(0));
  });

  test('start at the rate of the installation when there are more [D-59]', () => {
    const all = delays(new RenewalPlaces(50), 'mer_1', 1_000);
    // The 20 more of the first slot have taken places of the second one.
    expect(bySlot(all)).toEqual([220, 180, 200, 200, 200]);
    expect(all.filter((delay) => delay === 0)).toHaveLength(220);
    // Those of a later slot are spread over it.
    const second = all.filter((delay) => delay >= 4 && delay < 8);
    expect(second.filter((delay) => delay < 6).length).toBeGreaterThan(30);
    expect(second.filter((delay) => delay >= 6).length).toBeGreaterThan(30);
  });

  test('of a small merchant are not delayed beside those of a big one, until twice the rate [D-59]', () => {
    const places = new RenewalPlaces(25);
    delays(places, 'mer_big', 5_000);
    for (const small of ['mer_1', 'mer_2', 'mer_3', 'mer_4']) {
      expect(delays(places, small, 20)).toEqual(Array(20).fill(0));
    }
    const next = delays(places, 'mer_next', 1);
    expect(next[0]).toBeGreaterThan(190);
  });

  test('of many small merchants are spread, too [D-59]', () => {
    const places = new RenewalPlaces(50);
    const all = Array.from({ length: 1_000 }, (_, n) => delays(places, `mer_${n}`, 1)[0]!);
    expect(bySlot(all)).toEqual([400, 0, 200, 200, 200]);
  });

  test('take the same time for each renewal in a small and in a big wave, at any instant of a slot [D-59]', () => {
    for (const dueAt of [DUE, DUE + 3_999]) {
      const lastOf = (count: number) =>
        Math.max(...delays(new RenewalPlaces(25), 'mer_1', count, dueAt)) / count;
      expect(lastOf(5_000) / lastOf(1_000)).toBeCloseTo(1, 2);
    }
  });
});

test('slots in a row start at most twice the renewals that they have room for, and one slot more [D-59]', () => {
  const renewals = fc.array(
    fc.record({ merchant: fc.nat(3), second: fc.nat(60), n: fc.nat(10_000) }),
    { maxLength: 300 },
  );
  fc.assert(
    fc.property(renewals, fc.nat(100), fc.integer({ min: 1, max: 20 }), (given, first, count) => {
      const places = new RenewalPlaces(1);
      let started = 0;
      for (const { merchant, second, n } of given) {
        const dueAt = DUE + second * 1_000;
        const delayMs = places.take(dueAt, renewal(`mer_${merchant}`, n));
        expect(delayMs).toBeGreaterThanOrEqual(0);
        const slot = Math.floor((dueAt + delayMs - DUE) / 4_000);
        if (slot >= first && slot < first + count) started += 1;
      }
      expect(started).toBeLessThanOrEqual((2 * count + 1) * 4);
    }),
  );
});

test('with more than 200,000 slots, those in the past are forgotten, and later ones are not [D-59]', () => {
  const places = new RenewalPlaces(1);
  const later = DUE + 200_001 * 4_000;
  for (const dueAt of [DUE, later]) delays(places, 'mer_1', 8, dueAt);
  const delayAt = (dueAt: number) => delays(places, 'mer_1', 1, dueAt)[0];
  for (let slot = 10; slot < 200_000; slot += 1) places.take(DUE + slot * 4_000, renewal('m', 1));
  places.forgetBefore(DUE + 4_000);
  expect(delayAt(DUE)).toBeGreaterThan(0);
  for (let slot = 200_010; slot < 200_100; slot += 1)
    places.take(DUE + slot * 4_000, renewal('m', 1));
  places.forgetBefore(DUE + 4_000);
  expect(delayAt(DUE)).toBe(0);
  expect(delayAt(later)).toBeGreaterThan(0);
});

describe('the place of a renewal', () => {
  const monthly = (): SubscriptionState => ({
    ...subscribed('2026-01-31T12:00Z').state,
    ...initialJitter({ subscriptionId: 'sub_1', testClockId: null }, null),
  });
  const full = (): RenewalPlaces => {
    const places = new RenewalPlaces(1);
    delays(places, 'mer_1', 200, at('2026-02-28T12:00Z'));
    return places;
  };

  test('delays the charge and not its date, and is kept until the date is another one [D-05, D-59]', () => {
    const state = monthly();
    const place = takePlace(full(), state, state.createdAt);
    expect(place?.jitterFor).toBe(at('2026-02-28T12:00Z'));
    const minutes = Math.floor((place?.jitterMs ?? 0) / 60_000);
    expect(minutes).toBe(3);
    const placed = { ...state, ...place };
    expect(iso(nextPaymentAt(placed))).toBe('2026-02-28T12:00');
    expect(iso(wakeAt(placed))?.slice(0, 15)).toBe('2026-02-28T12:03'.slice(0, 15));
    expect(takePlace(full(), placed, state.createdAt)).toBeNull();
    // The delay of February is not one of March.
    expect(iso(wakeAt({ ...placed, nextIndex: 2 }))).toBe('2026-03-31T12:00');
  });

  test('is not taken when the merchant has set a jitter, and for a date in the past [D-59]', () => {
    const state = monthly();
    const { jitterFor: _, ...fixed } = state;
    expect(takePlace(full(), fixed, state.createdAt)).toBeNull();
    const late = takePlace(full(), state, at('2026-02-28T12:00Z'));
    expect(late).toEqual({ jitterMs: 0, jitterFor: at('2026-02-28T12:00Z') });
  });

  test('is not taken without a next date [D-59]', () => {
    const cancelled = { ...monthly(), cancelAtPeriodEnd: true };
    expect(decide(cancelled, cancelled.createdAt, cancelled.createdAt)).toMatchObject({
      reason: 'cancelled, the period ends',
    });
    expect(takePlace(full(), cancelled, cancelled.createdAt)).toBeNull();
  });
});
