import { describe, expect, test } from 'vitest';
import { nextPaymentAt } from '../../domain/subscription/state.ts';
import { DAY, Simulation } from '../support/simulation.ts';

/** Each test is a counterexample that the random sequences of `subscription-model.test.ts` found. */

const declined = (code = 'card_declined') => ({ kind: 'declined', code }) as const;
const TOKEN = { paymentToken: 'ptk', checkoutSessionId: 'cs' };
const at = (iso: string): number => Date.parse(iso);

/**
 * Creates a subscription of 19.99 USD a month from 10 January, three cycles, and runs the clock to 10 February.
 * `replies` are the gateway's answers from the second charge on.
 */
function subscribed(...replies: Simulation['replies']): Simulation {
  const simulation = new Simulation('2026-01-10T00:00:00Z');
  simulation.pay();
  simulation.replies.push(...replies);
  simulation.runTo('2026-02-10T00:00:00Z');
  return simulation;
}

const sent = (simulation: Simulation) =>
  simulation.sends
    .slice(1)
    .map(({ at, cycleNumber, trigger }) =>
      [new Date(at).toISOString().slice(0, 16), cycleNumber, trigger].join(' '),
    );

function expectNothingFurther(simulation: Simulation): void {
  const before = { sends: simulation.sends.length, events: simulation.events.length };
  simulation.runTo(simulation.now + 5 * 365 * DAY);
  expect({ sends: simulation.sends.length, events: simulation.events.length }).toEqual(before);
}

describe('an unpause while the outcome of a charge is unknown', () => {
  test('leads to a retry on its date, not before, when the charge is declined [D-§4]', () => {
    const simulation = subscribed({ kind: 'unknown' }, declined());
    simulation.command('pause', {});
    simulation.command('unpause', { newNextPaymentAt: at('2026-03-20T00:00:00Z') });
    simulation.runTo('2026-02-11T00:00:00Z');
    expect(simulation.state.status).toBe('UNPAID');
    expect(nextPaymentAt(simulation.state)).toBe(at('2026-03-20T00:00:00Z'));
    simulation.runTo('2026-04-20T00:00:00Z');
    expect(sent(simulation)).toEqual([
      '2026-02-10T00:00 2 scheduled',
      '2026-03-20T00:00 2 automatic_retry',
      '2026-04-20T00:00 3 scheduled',
    ]);
    expect(simulation.state).toMatchObject({ status: 'ENDED', endReason: 'completed' });
    expectNothingFurther(simulation);
  });

  test('restarts the retry plan on its date [D-§4, D-30]', () => {
    const simulation = subscribed(
      declined(),
      declined(),
      { kind: 'unknown' },
      declined(),
      declined(),
    );
    simulation.runTo('2026-02-10T12:00:00Z');
    expect(simulation.state.owed).toMatchObject({ retriesUsed: 2, nextRetryAt: null });
    simulation.command('pause', {});
    simulation.command('unpause', { newNextPaymentAt: at('2026-03-20T00:00:00Z') });
    simulation.runTo('2026-03-20T04:00:00Z');
    expect(sent(simulation)).toEqual([
      '2026-02-10T00:00 2 scheduled',
      '2026-02-10T04:00 2 automatic_retry',
      '2026-02-10T12:00 2 automatic_retry',
      '2026-03-20T00:00 2 automatic_retry',
      '2026-03-20T04:00 2 automatic_retry',
    ]);
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  });

  test('leads to a retry on its date also when the charge is a manual retry [D-§4, D-31]', () => {
    const simulation = subscribed(declined(), { kind: 'unknown' }, declined());
    simulation.command('manualRetry', {});
    simulation.command('pause', {});
    simulation.command('unpause', { newNextPaymentAt: at('2026-03-20T00:00:00Z') });
    simulation.runTo('2026-04-20T00:00:00Z');
    expect(sent(simulation)).toEqual([
      '2026-02-10T00:00 2 scheduled',
      '2026-02-10T00:00 2 manual_retry',
      '2026-03-20T00:00 2 automatic_retry',
      '2026-04-20T00:00 3 scheduled',
    ]);
    expectNothingFurther(simulation);
  });

  test('is overridden by the date of a later edit [D-15]', () => {
    const simulation = subscribed({ kind: 'unknown' }, declined());
    simulation.command('pause', {});
    simulation.command('unpause', { newNextPaymentAt: at('2026-03-20T00:00:00Z') });
    simulation.command('edit', { newNextPaymentAt: at('2026-03-25T00:00:00Z') });
    simulation.runTo('2026-04-25T00:00:00Z');
    expect(sent(simulation)).toEqual([
      '2026-02-10T00:00 2 scheduled',
      '2026-03-25T00:00 2 automatic_retry',
      '2026-04-25T00:00 3 scheduled',
    ]);
    expectNothingFurther(simulation);
  });
});

describe('a retry plan that a hard decline stopped', () => {
  test('is replaced by an edited date once the payment method has changed [D-15, D-30]', () => {
    const simulation = subscribed(declined('stolen_card'), { kind: 'unknown' }, declined());
    simulation.command('replacePaymentMethod', TOKEN);
    expect(simulation.state.openAttempt).toMatchObject({ trigger: 'new_method', lookups: 1 });
    simulation.command('edit', { newNextPaymentAt: at('2026-03-20T00:00:00Z') });
    simulation.runTo('2026-04-20T00:00:00Z');
    expect(sent(simulation)).toEqual([
      '2026-02-10T00:00 2 scheduled',
      '2026-02-10T00:00 2 new_method',
      '2026-03-20T00:00 2 automatic_retry',
      '2026-04-20T00:00 3 scheduled',
    ]);
    expectNothingFurther(simulation);
  });

  test('stays stopped after an unpause, until the payment method changes [D-30, D-§4]', () => {
    const simulation = subscribed(declined('stolen_card'));
    simulation.command('pause', {});
    simulation.command('unpause', { newNextPaymentAt: at('2026-03-20T00:00:00Z') });
    simulation.runTo('2026-04-01T00:00:00Z');
    expect(sent(simulation)).toEqual(['2026-02-10T00:00 2 scheduled']);
    expect(simulation.state).toMatchObject({
      status: 'UNPAID',
      owed: { retriesStopped: true, nextRetryAt: null },
    });
    simulation.replies.push(declined());
    simulation.command('replacePaymentMethod', TOKEN);
    simulation.runTo('2026-04-01T04:00:00Z');
    expect(sent(simulation).slice(1)).toEqual([
      '2026-04-01T00:00 2 new_method',
      '2026-04-01T04:00 2 automatic_retry',
    ]);
    expect(simulation.state.status).toBe('ACTIVE');
  });
});

describe('a retry that succeeds after its outcome was unknown', () => {
  /**
   * Monthly from 31 January. Cycle 2 is declined from 28 February on. Its manual retry on 10 April has an
   * unknown outcome. The next look-up finds that the retry succeeded, unless the test adds other answers.
   */
  function retriedInApril(): Simulation {
    const simulation = new Simulation('2026-01-31T00:00:00Z');
    simulation.pay();
    simulation.replies.push(...Array.from({ length: 5 }, () => declined()));
    simulation.runTo('2026-04-10T00:00:00Z');
    simulation.replies.push({ kind: 'unknown' });
    simulation.command('manualRetry', {});
    expect(simulation.state.openAttempt).toMatchObject({ trigger: 'manual_retry', lookups: 1 });
    return simulation;
  }
  const periodEnd = ({ state }: Simulation): string =>
    new Date(state.currentPeriodEndAt ?? 0).toISOString();

  test('pays the period until 30 April when no command follows [D-34, D-§4]', () => {
    const simulation = retriedInApril();
    simulation.runTo('2026-04-11T00:00:00Z');
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
    expect(periodEnd(simulation)).toBe('2026-04-30T00:00:00.000Z');
  });

  test('pays the period until 30 April when the subscription is cancelled before the outcome is known [D-34]', () => {
    const simulation = retriedInApril();
    simulation.command('cancel', { reason: 'cancelled' });
    simulation.runTo('2026-04-11T00:00:00Z');
    expect(simulation.state).toMatchObject({ status: 'ENDED', cyclesCharged: 2 });
    expect(periodEnd(simulation)).toBe('2026-04-30T00:00:00.000Z');
    expectNothingFurther(simulation);
  });

  test('pays the period until 30 April when the subscription is paused before the outcome is known [D-34]', () => {
    const simulation = retriedInApril();
    simulation.command('pause', {});
    simulation.runTo('2026-04-11T00:00:00Z');
    expect(simulation.state).toMatchObject({ status: 'PAUSED', cyclesCharged: 2 });
    expect(periodEnd(simulation)).toBe('2026-04-30T00:00:00.000Z');
    expectNothingFurther(simulation);
  });

  test('leaves the date of an unpause to the next cycle, even if the retry succeeds after that date [D-§4]', () => {
    const simulation = retriedInApril();
    simulation.replies.push(...Array.from({ length: 20 }, () => ({ kind: 'unknown' }) as const));
    simulation.command('pause', {});
    simulation.command('unpause', { newNextPaymentAt: at('2026-04-10T01:00:00Z') });
    simulation.runTo('2026-04-12T00:00:00Z');
    expect(simulation.state).toMatchObject({ status: 'ENDED', cyclesCharged: 3 });
    expect(sent(simulation).slice(-2)).toEqual([
      '2026-04-10T00:00 2 manual_retry',
      expect.stringMatching(/3 scheduled$/u),
    ]);
    expect(simulation.sends.at(-1)?.dueAt).toBe(at('2026-04-10T01:00:00Z'));
  });
});

describe('an edited date after a decline that stops the automatic retries', () => {
  test('is refused with the decline code until the payment method has changed [D-15, D-30]', () => {
    const simulation = subscribed(declined('lost_card'), declined());
    const before = structuredClone(simulation.state);
    const date = { newNextPaymentAt: at('2026-03-20T00:00:00Z') };
    expect(simulation.command('edit', { ...date, newAmountMinor: 2_500 }).decision).toEqual({
      ok: false,
      code: 'operation_not_allowed',
      message:
        'The payment method was declined (lost_card) and is not charged again. The payer has to replace it.',
    });
    expect(simulation.state).toEqual(before);
    expect(simulation.command('edit', { newAmountMinor: 2_500 }).decision).toEqual({ ok: true });
    simulation.command('replacePaymentMethod', TOKEN);
    expect(simulation.command('edit', date).decision).toEqual({ ok: true });
    simulation.runTo('2026-03-20T00:00:00Z');
    expect(sent(simulation)).toEqual([
      '2026-02-10T00:00 2 scheduled',
      '2026-02-10T00:00 2 new_method',
      '2026-03-20T00:00 2 automatic_retry',
    ]);
  });

  test('is refused when the decline is authentication_required, which is not hard [D-15, D-30]', () => {
    const simulation = subscribed(declined('authentication_required'));
    const date = { newNextPaymentAt: at('2026-03-20T00:00:00Z') };
    expect(simulation.command('edit', date).decision).toMatchObject({
      ok: false,
      code: 'operation_not_allowed',
      message: expect.stringContaining('(authentication_required)') as string,
    });
  });
});
