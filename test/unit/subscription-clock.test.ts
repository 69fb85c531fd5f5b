import { describe, expect, test } from 'vitest';
import { knownUntil, newSubscription } from '../../domain/subscription/state.ts';
import { Clock } from '../../workflows/subscription/run.ts';

const DAY = 86_400_000;
const START = Date.parse('2027-02-19T12:00:00Z');

describe('the clock of a subscription', () => {
  test('catches up to a recorded instant, never past its target and never back [D-05, D-60]', () => {
    const clock = new Clock({ nowAt: START, targetAt: START + 9 * DAY, reachedAt: START });
    clock.catchUp(START + 3 * DAY + 4 * 3_600_000);
    expect(new Date(clock.now).toISOString()).toBe('2027-02-22T16:00:00.000Z');
    clock.catchUp(START + DAY);
    expect(new Date(clock.now).toISOString()).toBe('2027-02-22T16:00:00.000Z');
    clock.catchUp(START + 30 * DAY);
    expect(new Date(clock.now).toISOString()).toBe('2027-02-28T12:00:00.000Z');
    expect(clock.isBehind).toBe(false);
  });

  test('catches up to the start of the open attempt or to the last log entry, whichever is later [D-60]', () => {
    const state = newSubscription({
      subscriptionId: 'sub_1',
      merchantId: 'mer_1',
      customerId: 'cus_1',
      terms: {
        amountMinor: 1_999,
        currency: 'USD',
        interval: 'DAY',
        intervalCount: 1,
        cycleCount: 12,
        upfrontAmountMinor: null,
        trial: null,
      },
      createdAt: START,
      checkoutExpiresAt: START + DAY,
      testClockId: 'clk_1',
    });
    expect(knownUntil(state)).toBe(START);
    const openAttempt = {
      attemptNumber: 2,
      trigger: 'automatic_retry' as const,
      cause: { rule: 'payer' } as const,
      paymentMethodId: 'pmt_1',
      commandId: null,
      startedAt: START + 3 * DAY,
      lookups: 0,
      lookupAt: START,
      voidedBy: null,
    };
    expect(knownUntil({ ...state, openAttempt })).toBe(START + 3 * DAY);
  });

  test('does not catch up when the subscription is not on a test clock', () => {
    const clock = new Clock(null);
    const before = Date.now();
    clock.catchUp(before + DAY);
    expect(clock.now - before).toBeLessThan(DAY);
  });
});
