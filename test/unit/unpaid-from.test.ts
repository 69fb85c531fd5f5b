import { describe, expect, test } from 'vitest';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import type { RetryPlan } from '../../domain/retry-plan.ts';
import { describe as inWords } from '../../domain/subscription/describe.ts';
import { nextPaymentAt } from '../../domain/subscription/state.ts';
import { upcomingCharges } from '../../domain/subscription/upcoming.ts';
import type { Terms } from '../../domain/subscription/state.ts';
import { expectNothingFurther, HOUR, Simulation } from '../support/simulation.ts';

const QUIET: RetryPlan = { ...DEFAULT_RETRY_PLAN, unpaidFrom: 'retries_exhausted' };
const declined = (code = 'card_declined') => ({ kind: 'declined', code }) as const;
const TOKEN = { paymentToken: 'ptk', checkoutSessionId: 'cs' };
const FEB_10 = Date.parse('2026-02-10T00:00:00Z');
const iso = (at: number | null): string | null =>
  at === null ? null : new Date(at).toISOString().slice(0, 16);

/**
 * Creates a subscription of 19.99 USD a month from 10 January, three cycles. The next `declines` charges after
 * the checkout are declined.
 */
function subscribed(plan: RetryPlan, declines: number, terms: Partial<Terms> = {}): Simulation {
  const simulation = new Simulation('2026-01-10T00:00:00Z', terms, plan);
  simulation.pay();
  simulation.replies.push(...Array.from({ length: declines }, () => declined()));
  simulation.events.length = 0;
  return simulation;
}

const sent = (simulation: Simulation) =>
  simulation.sends.slice(1).map(({ at, cycleNumber, trigger }) => [iso(at), cycleNumber, trigger]);

describe('a subscription with unpaidFrom retries_exhausted', () => {
  test('stays ACTIVE while retries are left, and shows the next retry [D-30, D-34]', () => {
    const simulation = subscribed(QUIET, 2);
    simulation.runTo(FEB_10);
    expect(simulation.state.status).toBe('ACTIVE');
    expect(iso(nextPaymentAt(simulation.state))).toBe('2026-02-10T04:00');
    expect(inWords(simulation.state, simulation.now)).toContain(
      '**ACTIVE**: cycle 2, 19.99 USD, was declined (card_declined); the next retry is on 2026-02-10 04:00 UTC.',
    );
    expect(
      upcomingCharges(simulation.state, 3, simulation.now).map((one) => [
        iso(one.at),
        one.cycleNumber,
      ]),
    ).toEqual([
      ['2026-02-10T04:00', 2],
      ['2026-03-10T00:00', 3],
    ]);
    simulation.runTo('2026-12-31T00:00:00Z');
    expect(simulation.events).toEqual([
      'intent.failed',
      'intent.failed',
      'intent.success',
      'subscription.cycle_charged',
      'intent.success',
      'subscription.cycle_charged',
      'subscription.ended',
    ]);
    expect(sent(simulation)).toEqual([
      ['2026-02-10T00:00', 2, 'scheduled'],
      ['2026-02-10T04:00', 2, 'automatic_retry'],
      ['2026-02-10T12:00', 2, 'automatic_retry'],
      ['2026-03-10T00:00', 3, 'scheduled'],
    ]);
    expect(simulation.statuses).toEqual(['CREATED', 'ACTIVE', 'ENDED']);
    expectNothingFurther(simulation);
  });

  test('becomes UNPAID when the last retry is declined [D-30]', () => {
    const simulation = subscribed(QUIET, 5);
    simulation.runTo('2026-02-11T23:59:59Z');
    expect(simulation.state.status).toBe('ACTIVE');
    simulation.runTo('2026-02-12T00:00:00Z');
    expect(simulation.state).toMatchObject({ status: 'UNPAID', owed: { nextRetryAt: null } });
    expect(simulation.events).toEqual([
      ...Array.from({ length: 5 }, () => 'intent.failed'),
      'subscription.unpaid',
    ]);
    expectNothingFurther(simulation);
  });

  test('becomes UNPAID at once when the decline stops the retries [D-30]', () => {
    const simulation = subscribed(QUIET, 0);
    simulation.replies.push(declined('lost_card'));
    simulation.runTo(FEB_10);
    expect(simulation.events).toEqual(['intent.failed', 'subscription.unpaid']);
    expectNothingFurther(simulation);
  });

  test('ends after the last retry without UNPAID when the plan says so [D-30]', () => {
    const simulation = subscribed({ ...QUIET, afterExhausted: 'end' }, 5);
    simulation.runTo('2026-02-12T00:00:00Z');
    expect(simulation.state.endReason).toBe('retries_exhausted');
    expect(simulation.statuses).toEqual(['CREATED', 'ACTIVE', 'ENDED']);
    expectNothingFurther(simulation);
  });

  test('stays TRIALING when the first charge after the trial is declined [D-30]', () => {
    const trial = { interval: 'DAY', count: 7 } as const;
    const simulation = subscribed(QUIET, 1, { trial });
    simulation.runTo('2026-01-17T00:00:00Z');
    expect(simulation.state.status).toBe('TRIALING');
    expect(iso(nextPaymentAt(simulation.state))).toBe('2026-01-17T04:00');
    simulation.runTo('2026-01-17T04:00:00Z');
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 1 });
    expect(iso(nextPaymentAt(simulation.state))).toBe('2026-02-17T00:00');
  });

  test('skips the dates that pass during the retries, as in UNPAID [D-§4]', () => {
    const simulation = subscribed(QUIET, 4, { interval: 'DAY', cycleCount: 4 });
    simulation.runTo('2026-01-31T00:00:00Z');
    expect(sent(simulation)).toEqual([
      ['2026-01-11T00:00', 2, 'scheduled'],
      ['2026-01-11T04:00', 2, 'automatic_retry'],
      ['2026-01-11T12:00', 2, 'automatic_retry'],
      ['2026-01-12T00:00', 2, 'automatic_retry'],
      ['2026-01-13T00:00', 2, 'automatic_retry'],
      ['2026-01-14T00:00', 3, 'scheduled'],
      ['2026-01-15T00:00', 4, 'scheduled'],
    ]);
    expect(simulation.statuses).toEqual(['CREATED', 'ACTIVE', 'ENDED']);
  });

  test('is charged on an edited date instead of its retries, and becomes UNPAID if this charge is declined [D-15, D-30]', () => {
    const simulation = subscribed(QUIET, 2);
    simulation.runTo(FEB_10);
    simulation.command('edit', { newNextPaymentAt: FEB_10 + 2 * HOUR });
    expect(iso(nextPaymentAt(simulation.state))).toBe('2026-02-10T02:00');
    simulation.runTo(FEB_10 + 48 * HOUR);
    expect(simulation.state).toMatchObject({ status: 'UNPAID', owed: { nextRetryAt: null } });
    expect(sent(simulation)).toEqual([
      ['2026-02-10T00:00', 2, 'scheduled'],
      ['2026-02-10T02:00', 2, 'automatic_retry'],
    ]);
  });

  test('is not charged while PAUSED until an unpause charges the owed cycle [D-§4]', () => {
    const simulation = subscribed(QUIET, 1);
    simulation.runTo(FEB_10);
    simulation.command('pause', {});
    simulation.runTo('2026-03-01T00:00:00Z');
    simulation.command('unpause', { newNextPaymentAt: Date.parse('2026-03-05T00:00:00Z') });
    simulation.runTo('2026-12-31T00:00:00Z');
    expect(sent(simulation)).toEqual([
      ['2026-02-10T00:00', 2, 'scheduled'],
      ['2026-03-05T00:00', 2, 'scheduled'],
      ['2026-04-05T00:00', 3, 'scheduled'],
    ]);
  });

  test('refuses a manual retry while ACTIVE [D-31]', () => {
    const simulation = subscribed(QUIET, 1);
    simulation.runTo(FEB_10);
    expect(simulation.command('manualRetry', {}).decision).toMatchObject({
      ok: false,
      code: 'operation_not_allowed',
    });
  });

  test('uses a new payment method for the next retry [D-33]', () => {
    const simulation = subscribed(QUIET, 1);
    simulation.runTo(FEB_10);
    const { result } = simulation.command('replacePaymentMethod', TOKEN);
    expect(result).toMatchObject({ outcome: 'saved' });
    simulation.runTo(FEB_10 + 4 * HOUR);
    expect(simulation.state).toMatchObject({
      status: 'ACTIVE',
      cyclesCharged: 2,
      paymentMethodId: 'pmt_cmd_2',
    });
  });
});

describe('a new payment method before the last automatic retry', () => {
  /** The card is declined four times, and a new one is saved 14 h before the last retry of the plan. */
  function replacedIn(afterExhausted: RetryPlan['afterExhausted'], declines: number): Simulation {
    const simulation = subscribed({ ...QUIET, afterExhausted }, declines);
    simulation.runTo('2026-02-11T10:00:00Z');
    simulation.command('replacePaymentMethod', TOKEN);
    expect(iso(nextPaymentAt(simulation.state))).toBe('2026-02-12T00:00');
    return simulation;
  }

  test.for(['end', 'stay_unpaid'] as const)(
    'starts the plan anew when its first charge is declined, with afterExhausted %s [D-30]',
    (afterExhausted) => {
      const simulation = replacedIn(afterExhausted, 5);
      simulation.runTo('2026-02-12T00:00:00Z');
      expect(simulation.state.status).toBe('ACTIVE');
      expect(iso(nextPaymentAt(simulation.state))).toBe('2026-02-12T04:00');
      simulation.runTo('2026-12-31T00:00:00Z');
      expect(sent(simulation)).toEqual([
        ['2026-02-10T00:00', 2, 'scheduled'],
        ['2026-02-10T04:00', 2, 'automatic_retry'],
        ['2026-02-10T12:00', 2, 'automatic_retry'],
        ['2026-02-11T00:00', 2, 'automatic_retry'],
        ['2026-02-12T00:00', 2, 'automatic_retry'],
        ['2026-02-12T04:00', 2, 'automatic_retry'],
        ['2026-03-10T00:00', 3, 'scheduled'],
      ]);
      expect(simulation.statuses).toEqual(['CREATED', 'ACTIVE', 'ENDED']);
      expectNothingFurther(simulation);
    },
  );

  test('ends the subscription after four more declined retries when the plan says so [D-30]', () => {
    const simulation = replacedIn('end', 9);
    simulation.runTo('2026-02-13T23:59:59Z');
    expect(simulation.state.status).toBe('ACTIVE');
    simulation.runTo('2026-02-14T00:00:00Z');
    expect(simulation.state).toMatchObject({ status: 'ENDED', endReason: 'retries_exhausted' });
    expect(simulation.sends.slice(1)).toHaveLength(9);
    expectNothingFurther(simulation);
  });
});

describe('the event subscription.retries_exhausted', () => {
  test('follows the last decline of the plan [D-30, D-50]', () => {
    const simulation = subscribed(DEFAULT_RETRY_PLAN, 5);
    simulation.runTo('2026-02-12T00:00:00Z');
    expect(simulation.events).toEqual([
      'intent.failed',
      'subscription.unpaid',
      ...Array.from({ length: 4 }, () => 'intent.failed'),
      'subscription.retries_exhausted',
    ]);
    simulation.replies.push(declined());
    simulation.command('manualRetry', {});
    expect(simulation.events.slice(-2)).toEqual([
      'subscription.retries_exhausted',
      'intent.failed',
    ]);
    expectNothingFurther(simulation);
  });

  test('comes at the first decline if this decline stops the retries or the plan has no retry [D-30, D-50]', () => {
    const expected = ['intent.failed', 'subscription.unpaid', 'subscription.retries_exhausted'];
    const hard = subscribed(DEFAULT_RETRY_PLAN, 0);
    hard.replies.push(declined('stolen_card'));
    hard.runTo('2026-02-12T00:00:00Z');
    expect(hard.events).toEqual(expected);
    const none = subscribed({ ...DEFAULT_RETRY_PLAN, delaysMs: [] }, 1);
    none.runTo('2026-02-12T00:00:00Z');
    expect(none.events).toEqual(expected);
  });

  test('comes again when the retries of a new payment method end [D-30, D-50]', () => {
    for (const plan of [DEFAULT_RETRY_PLAN, QUIET]) {
      const simulation = subscribed(plan, 5);
      simulation.runTo('2026-02-12T00:00:00Z');
      simulation.events.length = 0;
      simulation.replies.push(...Array.from({ length: 5 }, () => declined()));
      simulation.command('replacePaymentMethod', TOKEN);
      simulation.runTo('2026-02-20T00:00:00Z');
      expect(simulation.events).toEqual([
        ...Array.from({ length: 5 }, () => 'intent.failed'),
        'subscription.retries_exhausted',
      ]);
    }
  });

  test('is not emitted when the plan ends the subscription [D-30, D-50]', () => {
    const simulation = subscribed({ ...DEFAULT_RETRY_PLAN, afterExhausted: 'end' }, 5);
    simulation.runTo('2026-02-12T00:00:00Z');
    expect(simulation.events.slice(-2)).toEqual(['intent.failed', 'subscription.ended']);
  });
});
