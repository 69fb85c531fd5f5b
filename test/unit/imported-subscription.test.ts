import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { INTERVAL_UNITS } from '../../domain/calendar.ts';
import { importedSubscription, indexOfDate } from '../../cli/import/imported.ts';
import { textOf } from '../../domain/subscription/entries.ts';
import { stateProblem } from '../../domain/subscription/recorded-state.ts';
import { nextPaymentAt } from '../../domain/subscription/state.ts';
import { at, DAY, expectNothingFurther, Simulation } from '../support/simulation.ts';

const TERMS = {
  amountMinor: 1_999,
  currency: 'USD',
  interval: 'MONTH',
  intervalCount: 1,
  cycleCount: 6,
} as const;

/** A simulation of a subscription that was imported at `now`. */
function imported(now: number, fields: Partial<Parameters<typeof importedSubscription>[0]>) {
  const simulation = new Simulation(now);
  simulation.statuses.length = 0;
  simulation.state = importedSubscription({
    subscriptionId: 'sub_1',
    merchantId: 'mer_1',
    customerId: 'cus_1',
    paymentMethodId: 'pmt_1',
    status: 'ACTIVE',
    terms: TERMS,
    cyclesCharged: 4,
    anchorAt: at('2027-01-31T10:00Z'),
    nextIndex: 1,
    currentPeriodEndAt: at('2027-02-28T10:00Z'),
    importedAt: now,
    jitter: { jitterMs: 0 },
    ...fields,
  });
  return simulation;
}

const amountsOf = ({ sends }: Simulation) => sends.map(({ amountMinor }) => amountMinor);

describe('an imported subscription', () => {
  test('is charged for its remaining cycles by the anchor’s calendar, and then ends [D-05]', () => {
    const simulation = imported(at('2027-02-10'), {});
    expect(stateProblem(simulation.state)).toBeNull();
    const { latest } = simulation.state;
    expect(latest).toEqual({
      version: 1,
      at: at('2027-02-10'),
      actor: 'operator',
      kind: 'imported',
      terms: simulation.state.terms,
      status: 'ACTIVE',
      anchorAt: at('2027-01-31T10:00Z'),
      nextIndex: 1,
      cyclesCharged: 4,
      currentPeriodEndAt: at('2027-02-28T10:00Z'),
    });
    expect(textOf(latest, simulation.state.terms)).toEqual({
      what: 'imported',
      why: 'an operator asked for it',
    });
    simulation.runTo('2027-02-28T09:59:59Z');
    expect(simulation.news).toBe('');
    simulation.runTo('2028-01-01');
    expect(simulation).toMatchObject({
      sent: '2027-02-28T10:00 5, 2027-03-31T10:00 6',
      news: 'intent.success, cycle_charged, intent.success, cycle_charged, ended',
      state: { status: 'ENDED', endReason: 'completed' },
    });
    expect(amountsOf(simulation)).toEqual([1_999, 1_999]);
    expectNothingFurther(simulation);
  });

  test('is charged first at the end of its trial [D-05]', () => {
    const trialEndAt = at('2027-02-28T10:00Z');
    const simulation = imported(at('2027-02-10'), {
      status: 'TRIALING',
      cyclesCharged: 0,
      anchorAt: trialEndAt,
      nextIndex: 0,
      terms: { ...TERMS, cycleCount: 2 },
    });
    expect(simulation.paidUntil).toBe('2027-02-28T10:00');
    simulation.runTo('2028-01-01');
    expect(simulation).toMatchObject({
      sent: '2027-02-28T10:00 1, 2027-03-28T10:00 2',
      news: 'intent.success, cycle_charged, active, intent.success, cycle_charged, ended',
    });
    expect(amountsOf(simulation)).toEqual([1_999, 1_999]);
    expectNothingFurther(simulation);
  });

  test('is charged at the same instants as a native subscription with the same anchor [D-05]', () => {
    const anchors = fc
      .tuple(fc.integer({ min: 2020, max: 2060 }), fc.nat(11), fc.integer({ min: 1, max: 31 }))
      .map(([year, month, day]) => Date.UTC(year, month, day, 10, 20, 30, 400));
    const given = fc.record({
      anchorAt: anchors,
      interval: fc.constantFrom(...INTERVAL_UNITS),
      intervalCount: fc.integer({ min: 1, max: 5 }),
      paidBefore: fc.integer({ min: 1, max: 8 }),
      paidAfter: fc.integer({ min: 1, max: 8 }),
      jitterMs: fc.constantFrom(0, 3_600_000),
    });
    fc.assert(
      fc.property(given, ({ anchorAt, paidBefore, paidAfter, jitterMs, ...step }) => {
        const terms = { ...TERMS, ...step, cycleCount: paidBefore + paidAfter };
        const native = new Simulation(anchorAt, terms, undefined, jitterMs);
        native.pay();
        while (native.state.cyclesCharged < paidBefore) {
          native.runTo((nextPaymentAt(native.state) ?? 0) + jitterMs);
        }
        native.sends.length = 0;
        const nextAt = nextPaymentAt(native.state) ?? 0;
        const nextIndex = indexOfDate({ anchorAt, ...step }, nextAt);
        expect(nextIndex).toBe(native.state.nextIndex);
        const copy = imported(native.now, {
          terms,
          cyclesCharged: paidBefore,
          anchorAt,
          nextIndex: nextIndex ?? -1,
          currentPeriodEndAt: nextAt,
          jitter: { jitterMs },
        });
        const endAt = nextAt + paidAfter * 5 * 367 * DAY;
        native.runTo(endAt);
        copy.runTo(endAt);
        expect(native.sends).toHaveLength(paidAfter);
        const { sent } = native;
        expect({ sent: copy.sent, amounts: amountsOf(copy) }).toEqual({
          sent,
          amounts: amountsOf(native),
        });
      }),
    );
  });
});
