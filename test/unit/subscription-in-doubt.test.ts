import { describe, expect, test } from 'vitest';
import { nextPaymentAt } from '../../domain/subscription/state.ts';
import { DAY, Simulation } from '../support/simulation.ts';

/** Counterexamples that the random sequences of `subscription-model.test.ts` found, one a test. */

const declined = (code = 'card_declined') => ({ kind: 'declined', code }) as const;
const TOKEN = { paymentToken: 'ptk', checkoutSessionId: 'cs' };
const at = (iso: string): number => Date.parse(iso);

/** 19.99 USD a month from 10 January, three cycles. `replies` answer the charges from the second on. */
function subscribed(...replies: Simulation['replies']): Simulation {
  const life = new Simulation('2026-01-10T00:00:00Z');
  life.pay();
  life.replies.push(...replies);
  life.runTo('2026-02-10T00:00:00Z');
  return life;
}

const sent = (life: Simulation) =>
  life.sends
    .slice(1)
    .map(({ at, cycleNumber, trigger }) =>
      [new Date(at).toISOString().slice(0, 16), cycleNumber, trigger].join(' '),
    );

function expectNothingFurther(life: Simulation): void {
  const before = { sends: life.sends.length, events: life.events.length };
  life.runTo(life.now + 5 * 365 * DAY);
  expect({ sends: life.sends.length, events: life.events.length }).toEqual(before);
}

describe('an unpause while the outcome of a charge is unknown', () => {
  test('retries a declined charge on the unpause date and not before [D-§4]', () => {
    const life = subscribed({ kind: 'unknown' }, declined());
    life.command('pause', {});
    life.command('unpause', { newNextPaymentAt: at('2026-03-20T00:00:00Z') });
    life.runTo('2026-02-11T00:00:00Z');
    expect(life.state.status).toBe('UNPAID');
    expect(nextPaymentAt(life.state)).toBe(at('2026-03-20T00:00:00Z'));
    life.runTo('2026-04-20T00:00:00Z');
    expect(sent(life)).toEqual([
      '2026-02-10T00:00 2 scheduled',
      '2026-03-20T00:00 2 automatic_retry',
      '2026-04-20T00:00 3 scheduled',
    ]);
    expect(life.state).toMatchObject({ status: 'ENDED', endReason: 'completed' });
    expectNothingFurther(life);
  });

  test('restarts the retry plan on its date [D-§4, D-30]', () => {
    const life = subscribed(declined(), declined(), { kind: 'unknown' }, declined(), declined());
    life.runTo('2026-02-10T12:00:00Z');
    expect(life.state.owed).toMatchObject({ retriesUsed: 2, nextRetryAt: null });
    life.command('pause', {});
    life.command('unpause', { newNextPaymentAt: at('2026-03-20T00:00:00Z') });
    life.runTo('2026-03-20T04:00:00Z');
    expect(sent(life)).toEqual([
      '2026-02-10T00:00 2 scheduled',
      '2026-02-10T04:00 2 automatic_retry',
      '2026-02-10T12:00 2 automatic_retry',
      '2026-03-20T00:00 2 automatic_retry',
      '2026-03-20T04:00 2 automatic_retry',
    ]);
    expect(life.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  });

  test('retries on its date also when the unknown charge is a manual retry [D-§4, D-31]', () => {
    const life = subscribed(declined(), { kind: 'unknown' }, declined());
    life.command('manualRetry', {});
    life.command('pause', {});
    life.command('unpause', { newNextPaymentAt: at('2026-03-20T00:00:00Z') });
    life.runTo('2026-04-20T00:00:00Z');
    expect(sent(life)).toEqual([
      '2026-02-10T00:00 2 scheduled',
      '2026-02-10T00:00 2 manual_retry',
      '2026-03-20T00:00 2 automatic_retry',
      '2026-04-20T00:00 3 scheduled',
    ]);
    expectNothingFurther(life);
  });

  test('is overridden by the date of a later edit [D-15]', () => {
    const life = subscribed({ kind: 'unknown' }, declined());
    life.command('pause', {});
    life.command('unpause', { newNextPaymentAt: at('2026-03-20T00:00:00Z') });
    life.command('edit', { newNextPaymentAt: at('2026-03-25T00:00:00Z') });
    life.runTo('2026-04-25T00:00:00Z');
    expect(sent(life)).toEqual([
      '2026-02-10T00:00 2 scheduled',
      '2026-03-25T00:00 2 automatic_retry',
      '2026-04-25T00:00 3 scheduled',
    ]);
    expectNothingFurther(life);
  });
});

describe('a retry plan that a hard decline stopped', () => {
  test('is replaced by an edited date once the payment method has changed [D-15, D-30]', () => {
    const life = subscribed(declined('stolen_card'), { kind: 'unknown' }, declined());
    life.command('replacePaymentMethod', TOKEN);
    expect(life.state.openAttempt).toMatchObject({ trigger: 'new_method', lookups: 1 });
    life.command('edit', { newNextPaymentAt: at('2026-03-20T00:00:00Z') });
    life.runTo('2026-04-20T00:00:00Z');
    expect(sent(life)).toEqual([
      '2026-02-10T00:00 2 scheduled',
      '2026-02-10T00:00 2 new_method',
      '2026-03-20T00:00 2 automatic_retry',
      '2026-04-20T00:00 3 scheduled',
    ]);
    expectNothingFurther(life);
  });

  test('stays stopped after the one charge of an unpause, until the method changes [D-30, D-§4]', () => {
    const life = subscribed(declined('stolen_card'), declined());
    life.command('pause', {});
    life.command('unpause', { newNextPaymentAt: at('2026-03-20T00:00:00Z') });
    life.runTo('2026-04-01T00:00:00Z');
    expect(sent(life)).toEqual(['2026-02-10T00:00 2 scheduled', '2026-03-20T00:00 2 scheduled']);
    expect(life.state).toMatchObject({
      status: 'UNPAID',
      owed: { retriesStopped: true, nextRetryAt: null },
    });
    life.replies.push(declined());
    life.command('replacePaymentMethod', TOKEN);
    life.runTo('2026-04-01T04:00:00Z');
    expect(sent(life).slice(2)).toEqual([
      '2026-04-01T00:00 2 new_method',
      '2026-04-01T04:00 2 automatic_retry',
    ]);
    expect(life.state.status).toBe('ACTIVE');
  });
});
