import { describe, expect, test } from 'vitest';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import type { RetryPlan } from '../../domain/retry-plan.ts';
import type { Terms } from '../../domain/subscription/terms.ts';
import {
  at,
  declined,
  declines,
  expectNothingFurther,
  HOUR,
  subscribed,
} from '../support/simulation.ts';
import type { Simulation } from '../support/simulation.ts';

const QUIET: RetryPlan = { ...DEFAULT_RETRY_PLAN, unpaidFrom: 'retries_exhausted' };
const FEB_10 = at('2026-02-10');

/** Monthly from 10 January. The next `count` charges after the checkout are declined. */
function declining(count: number, plan = QUIET, terms: Partial<Terms> = {}): Simulation {
  const simulation = subscribed('2026-01-10', terms, plan).gives(...declines(count));
  simulation.sends.length = 0;
  return simulation;
}

describe('a subscription with unpaidFrom retries_exhausted', () => {
  test('stays ACTIVE while retries are left, and shows the next retry [D-30, D-34]', () => {
    const simulation = declining(2);
    simulation.runTo(FEB_10);
    expect(simulation).toMatchObject({
      state: { status: 'ACTIVE' },
      nextAt: '2026-02-10T04:00',
      words: expect.stringContaining(
        '**ACTIVE**: cycle 2, 19.99 USD, was declined (card_declined); the next retry is on 2026-02-10 04:00 UTC.',
      ) as string,
    });
    expect(simulation.upcoming()).toBe('2026-02-10T04:00 2 1999, 2026-03-10 3 1999');
    simulation.runTo('2026-12-31');
    expect(simulation).toMatchObject({
      news: 'intent.failed, intent.failed, intent.success, cycle_charged, intent.success, cycle_charged, ended',
      sent: '2026-02-10 2, 2026-02-10T04:00 2 automatic_retry, 2026-02-10T12:00 2 automatic_retry, 2026-03-10 3',
      path: 'CREATED > ACTIVE > ENDED',
    });
    expectNothingFurther(simulation);
  });

  test('becomes UNPAID when the last retry is declined [D-30]', () => {
    const simulation = declining(5);
    simulation.runTo('2026-02-11T23:59:59Z');
    expect(simulation.state.status).toBe('ACTIVE');
    simulation.runTo('2026-02-12');
    expect(simulation).toMatchObject({
      state: { status: 'UNPAID', owed: { nextRetryAt: null } },
      news: `${'intent.failed, '.repeat(5)}unpaid`,
    });
    expectNothingFurther(simulation);
  });

  test('becomes UNPAID at once when the decline stops the retries [D-30]', () => {
    const simulation = declining(0).gives(declined('lost_card'));
    simulation.runTo(FEB_10);
    expect(simulation.news).toBe('intent.failed, unpaid');
    expectNothingFurther(simulation);
  });

  test('ends after the last retry without UNPAID when the plan says so [D-30]', () => {
    const simulation = declining(5, { ...QUIET, afterExhausted: 'end' });
    simulation.runTo('2026-02-12');
    expect(simulation.state.endReason).toBe('retries_exhausted');
    expect(simulation.path).toBe('CREATED > ACTIVE > ENDED');
    expectNothingFurther(simulation);
  });

  test('stays TRIALING when the first charge after the trial is declined [D-30]', () => {
    const simulation = declining(1, QUIET, { trial: { interval: 'DAY', count: 7 } });
    simulation.runTo('2026-01-17');
    expect(simulation).toMatchObject({ state: { status: 'TRIALING' }, nextAt: '2026-01-17T04:00' });
    simulation.runTo('2026-01-17T04:00Z');
    const state = { status: 'ACTIVE', cyclesCharged: 1 };
    expect(simulation).toMatchObject({ state, nextAt: '2026-02-17' });
  });

  test('skips the dates that pass during the retries, as in UNPAID [D-§4]', () => {
    const simulation = declining(4, QUIET, { interval: 'DAY', cycleCount: 4 });
    simulation.runTo('2026-01-31');
    expect(simulation).toMatchObject({
      sent:
        '2026-01-11 2, 2026-01-11T04:00 2 automatic_retry, 2026-01-11T12:00 2 automatic_retry, ' +
        '2026-01-12 2 automatic_retry, 2026-01-13 2 automatic_retry, 2026-01-14 3, 2026-01-15 4',
      path: 'CREATED > ACTIVE > ENDED',
    });
  });

  test('is charged on an edited date instead of its retries, and becomes UNPAID if this charge is declined [D-15, D-30]', () => {
    const simulation = declining(2);
    simulation.runTo(FEB_10);
    simulation.edit('2026-02-10T02:00Z');
    expect(simulation.nextAt).toBe('2026-02-10T02:00');
    simulation.runTo(FEB_10 + 48 * HOUR);
    expect(simulation).toMatchObject({
      state: { status: 'UNPAID', owed: { nextRetryAt: null } },
      sent: '2026-02-10 2, 2026-02-10T02:00 2 automatic_retry',
    });
  });

  test('is not charged while PAUSED until an unpause charges the owed cycle [D-§4]', () => {
    const simulation = declining(1);
    simulation.runTo(FEB_10);
    simulation.pause();
    simulation.runTo('2026-03-01');
    simulation.unpause('2026-03-05');
    simulation.runTo('2026-12-31');
    expect(simulation.sent).toBe('2026-02-10 2, 2026-03-05 2, 2026-04-05 3');
  });

  test('refuses a manual retry while ACTIVE [D-31]', () => {
    const simulation = declining(1);
    simulation.runTo(FEB_10);
    const code = 'operation_not_allowed';
    expect(simulation.retry().decision).toMatchObject({ ok: false, code });
  });

  test('uses a new payment method for the next retry [D-33]', () => {
    const simulation = declining(1);
    simulation.runTo(FEB_10);
    expect(simulation.newCard().result).toMatchObject({ outcome: 'saved' });
    simulation.runTo(FEB_10 + 4 * HOUR);
    const paid = { status: 'ACTIVE', cyclesCharged: 2, paymentMethodId: 'pmt_cmd_2' };
    expect(simulation.state).toMatchObject(paid);
    const entry = { actor: 'retry_plan', why: 'the retry plan said so (attempt 2)' };
    expect(simulation.log.at(-1)).toMatchObject(entry);
  });
});

describe('a new payment method before the last automatic retry', () => {
  /** The card is declined four times, and a new one is saved 14 h before the last retry of the plan. */
  function replacedIn(afterExhausted: RetryPlan['afterExhausted'], count: number): Simulation {
    const simulation = declining(count, { ...QUIET, afterExhausted });
    simulation.runTo('2026-02-11T10:00Z');
    simulation.newCard();
    expect(simulation.nextAt).toBe('2026-02-12');
    return simulation;
  }

  test.for(['end', 'stay_unpaid'] as const)(
    'starts the plan anew when its first charge is declined, with afterExhausted %s [D-30]',
    (afterExhausted) => {
      const simulation = replacedIn(afterExhausted, 5);
      simulation.runTo('2026-02-12');
      expect(simulation).toMatchObject({ state: { status: 'ACTIVE' }, nextAt: '2026-02-12T04:00' });
      simulation.runTo('2026-12-31');
      expect(simulation).toMatchObject({
        sent:
          '2026-02-10 2, 2026-02-10T04:00 2 automatic_retry, 2026-02-10T12:00 2 automatic_retry, ' +
          '2026-02-11 2 automatic_retry, 2026-02-12 2 automatic_retry, ' +
          '2026-02-12T04:00 2 automatic_retry, 2026-03-10 3',
        path: 'CREATED > ACTIVE > ENDED',
      });
      expectNothingFurther(simulation);
    },
  );

  test('ends the subscription after four more declined retries when the plan says so [D-30]', () => {
    const simulation = replacedIn('end', 9);
    simulation.runTo('2026-02-13T23:59:59Z');
    expect(simulation.state.status).toBe('ACTIVE');
    simulation.runTo('2026-02-14');
    expect(simulation.state).toMatchObject({ status: 'ENDED', endReason: 'retries_exhausted' });
    expect(simulation.sends).toHaveLength(9);
    expectNothingFurther(simulation);
  });
});

describe('the event subscription.retries_exhausted', () => {
  test('follows the last decline of the plan [D-30, D-50]', () => {
    const simulation = declining(5, DEFAULT_RETRY_PLAN);
    simulation.runTo('2026-02-12');
    const told = `intent.failed, unpaid, ${'intent.failed, '.repeat(4)}retries_exhausted`;
    expect(simulation.news).toBe(told);
    simulation.gives(declined()).retry();
    expect(simulation.news).toBe(`${told}, intent.failed`);
    expectNothingFurther(simulation);
  });

  test('comes at the first decline if this decline stops the retries or the plan has no retry [D-30, D-50]', () => {
    const hard = declining(0, DEFAULT_RETRY_PLAN).gives(declined('stolen_card'));
    const none = declining(1, { ...DEFAULT_RETRY_PLAN, delaysMs: [] });
    for (const simulation of [hard, none]) {
      simulation.runTo('2026-02-12');
      expect(simulation.news).toBe('intent.failed, unpaid, retries_exhausted');
    }
  });

  test('comes again when the retries of a new payment method end [D-30, D-50]', () => {
    for (const plan of [DEFAULT_RETRY_PLAN, QUIET]) {
      const simulation = declining(5, plan);
      simulation.runTo('2026-02-12');
      simulation.events.length = 0;
      simulation.gives(...declines(5)).newCard();
      simulation.runTo('2026-02-20');
      expect(simulation.news).toBe(`${'intent.failed, '.repeat(5)}retries_exhausted`);
    }
  });

  test('is not emitted when the plan ends the subscription [D-30, D-50]', () => {
    const simulation = declining(5, { ...DEFAULT_RETRY_PLAN, afterExhausted: 'end' });
    simulation.runTo('2026-02-12');
    expect(simulation.news).toMatch(/intent\.failed, ended$/);
    expect(simulation.news).not.toContain('retries_exhausted');
  });
});
