import { describe, expect, test } from 'vitest';
import { wakeAt } from '../../domain/subscription/decide.ts';
import { nextPaymentAt } from '../../domain/subscription/state.ts';
import { expectNothingFurther, HOUR, Simulation } from '../support/simulation.ts';

const declined = (code = 'card_declined') => ({ kind: 'declined', code }) as const;
const iso = (at: number | null) => (at === null ? null : new Date(at).toISOString());

describe('a manual retry', () => {
  const unpaid = (): Simulation => {
    const simulation = new Simulation('2026-01-01T00:00:00Z');
    simulation.pay();
    simulation.replies.push(declined());
    simulation.runTo('2026-02-01T01:00:00Z');
    return simulation;
  };

  test('causes no wake-up at the end of its cooldown [D-31]', () => {
    const simulation = unpaid();
    expect(simulation.command('manualRetry', {}).result).toMatchObject({ success: true });
    expect(iso(simulation.state.cooldownUntilAt)).toBe('2026-02-01T05:00:00.000Z');
    expect(iso(wakeAt(simulation.state))).toBe('2026-03-01T00:00:00.000Z');

    const stopped = unpaid();
    stopped.replies.push(declined('stolen_card'));
    stopped.command('manualRetry', {});
    expect(iso(stopped.state.cooldownUntilAt)).toBe('2026-02-01T05:00:00.000Z');
    expect(wakeAt(stopped.state)).toBeNull();
  });

  test('is refused until 4 h after the last one, with that instant in the refusal [D-31]', () => {
    const simulation = unpaid();
    simulation.replies.push(declined(), declined(), declined());
    expect(simulation.command('manualRetry', {}).result).toMatchObject({
      success: false,
      status: 'UNPAID',
      errorCode: 'card_declined',
    });
    simulation.runTo('2026-02-01T04:59:59.999Z');
    expect(simulation.command('manualRetry', {}).decision).toEqual({
      ok: false,
      code: 'bad_request',
      message: 'Another manual retry is possible from 2026-02-01T05:00:00.000Z.',
    });
    simulation.runTo('2026-02-01T05:00:00Z');
    expect(simulation.command('manualRetry', {}).decision).toEqual({ ok: true });
    // The automatic retry at 04:00 ignores the cooldown and does not extend it.
    expect(simulation.sends.map((send) => send.trigger)).toEqual([
      'checkout',
      'scheduled',
      'manual_retry',
      'automatic_retry',
      'manual_retry',
    ]);
  });

  test('is refused in every status but UNPAID [IF-3]', () => {
    const refused = (simulation: Simulation) => simulation.command('manualRetry', {}).decision;
    const simulation = new Simulation('2026-01-01T00:00:00Z', {
      trial: { interval: 'DAY', count: 1 },
    });
    const seen = [refused(simulation)];
    simulation.pay();
    seen.push(refused(simulation));
    simulation.runTo('2026-01-02T00:00:00Z');
    seen.push(refused(simulation));
    simulation.command('pause', {});
    seen.push(refused(simulation));
    simulation.command('cancel', { reason: 'cancelled' });
    seen.push(refused(simulation));
    expect(seen.map((decision) => (decision.ok ? 'ok' : decision.code))).toEqual(
      Array.from({ length: 5 }, () => 'operation_not_allowed'),
    );
  });

  test('returns ENDED and no date for another retry when it pays the last cycle [D-10a]', () => {
    const simulation = new Simulation('2026-01-01T00:00:00Z', { cycleCount: 2 });
    simulation.pay();
    simulation.replies.push(declined());
    simulation.runTo('2026-02-01T00:00:00Z');
    expect(simulation.command('manualRetry', {}).result).toEqual({
      kind: 'manualRetry',
      success: true,
      minManualRetryAt: null,
      status: 'ENDED',
      errorCode: null,
    });
    expectNothingFurther(simulation);
  });

  test('is refused while the outcome of a payment is unknown [D-31]', () => {
    const simulation = unpaid();
    simulation.replies.push({ kind: 'unknown' }, declined());
    expect(simulation.command('manualRetry', {})).toEqual({ decision: { ok: true }, result: null });
    expect(simulation.command('manualRetry', {}).decision).toMatchObject({
      code: 'payment_outcome_pending',
    });
    simulation.runTo('2026-02-01T01:00:10Z');
    expect(simulation.state.openAttempt).toBeNull();
    expect(simulation.sends.filter((send) => send.cycleNumber === 2)).toHaveLength(2);
  });
});

describe('an edit', () => {
  test('applies a new amount from the next intent on, not to an owed cycle [D-15]', () => {
    const simulation = new Simulation('2026-01-01T00:00:00Z');
    simulation.pay();
    simulation.replies.push(declined());
    simulation.runTo('2026-02-01T00:00:00Z');
    simulation.command('edit', { newAmountMinor: 9_900 });
    simulation.runTo('2026-03-01T00:00:00Z');
    expect(simulation.sends.map((send) => send.amountMinor)).toEqual([1_999, 1_999, 1_999, 9_900]);
  });

  test('applies a new date to the next payment and shifts all later ones [D-15, IF-4.6, D-05]', () => {
    const simulation = new Simulation('2026-01-10T00:00:00Z');
    simulation.pay();
    simulation.command('edit', { newNextPaymentAt: Date.parse('2026-02-28T06:00:00Z') });
    simulation.runTo('2026-12-01T00:00:00Z');
    expect(simulation.sentOn).toEqual(['2026-01-10', '2026-02-28', '2026-03-28']);
  });

  test('replaces the rest of the retry plan by a new date when the status is UNPAID [D-15]', () => {
    const simulation = new Simulation('2026-01-10T00:00:00Z');
    simulation.pay();
    simulation.replies.push(declined());
    simulation.runTo('2026-02-10T00:00:00Z');
    simulation.command('edit', { newNextPaymentAt: Date.parse('2026-02-20T00:00:00Z') });
    simulation.runTo('2026-12-01T00:00:00Z');
    expect(simulation.sentOn).toEqual(['2026-01-10', '2026-02-10', '2026-02-20', '2026-03-20']);
  });

  test.each([
    [{}, 'One of newAmount, newCycleCount, newNextPaymentDate, interval is required.'],
    [
      { interval: 'YEAR' as const },
      'newNextPaymentDate is required to edit the interval; intervalCount is required to edit the interval',
    ],
    [{ newNextPaymentAt: 0 }, 'newNextPaymentDate must lie in the future.'],
    [{ newCycleCount: 1 }, 'newCycleCount must exceed the 1 cycles already charged'],
  ])('is refused with %j: %s [D-15, IF-4.6, IF-8, D-03]', (fields, message) => {
    const simulation = new Simulation('2026-01-10T00:00:00Z');
    simulation.pay();
    expect(simulation.command('edit', fields).decision).toEqual({
      ok: false,
      code: 'bad_request',
      message,
    });
  });
});

test.each([
  [{ newAmountMinor: 9_000_000_000_000 }, `newAmount must make a sum`],
  [{ newCycleCount: 1_200 }, `newCycleCount must make a sum`],
])('an edit with %j is refused if the sum of all cycles is then unsafe [D-01]', (fields, start) => {
  const amounts =
    'newCycleCount' in fields
      ? { amountMinor: 9_000_000_000_000, cycleCount: 1_000 }
      : { amountMinor: 200_000_000, cycleCount: 1_200 };
  const simulation = new Simulation('2026-01-10T00:00:00Z', {
    currency: 'IRR',
    interval: 'DAY',
    ...amounts,
  });
  simulation.pay();
  expect(simulation.command('edit', fields).decision).toEqual({
    ok: false,
    code: 'bad_request',
    message: `${start} of all cycles of at most 9007199254740991`,
  });
});

describe('while the outcome of a payment is unknown', () => {
  /** The charge of cycle 2 is sent on 10 February, and its outcome is unknown. */
  const withUnknownCharge = (terms = {}): Simulation => {
    const simulation = new Simulation('2026-01-10T00:00:00Z', { cycleCount: 6, ...terms });
    simulation.pay();
    simulation.replies.push({ kind: 'unknown' });
    simulation.runTo('2026-02-10T00:00:00Z');
    return simulation;
  };

  test('an edited date becomes the date of the next cycle, not of the cycle after the next [D-15]', () => {
    const simulation = withUnknownCharge();
    simulation.command('edit', { newNextPaymentAt: Date.parse('2026-03-05T00:00:00Z') });
    simulation.runTo('2026-02-11T00:00:00Z');
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
    expect(iso(nextPaymentAt(simulation.state))).toBe('2026-03-05T00:00:00.000Z');
    expect(iso(simulation.state.currentPeriodEndAt)).toBe('2026-03-05T00:00:00.000Z');
    simulation.runTo('2026-04-05T00:00:00Z');
    expect(simulation.sentOn).toEqual(['2026-01-10', '2026-02-10', '2026-03-05', '2026-04-05']);
  });

  test('an unpause charges exactly once at its date [D-§4]', () => {
    const simulation = withUnknownCharge();
    simulation.command('pause', {});
    simulation.command('unpause', { newNextPaymentAt: Date.parse('2026-03-20T00:00:00Z') });
    simulation.runTo('2026-04-20T00:00:00Z');
    expect(simulation.sentOn).toEqual(['2026-01-10', '2026-02-10', '2026-03-20', '2026-04-20']);
    expect(simulation.sends.map((send) => send.cycleNumber)).toEqual([1, 2, 3, 4]);
  });

  test('a date edited during an open retry stays valid when that retry is declined [D-15]', () => {
    const end = { delaysMs: [HOUR], afterExhausted: 'end' } as const;
    const simulation = new Simulation(
      '2026-01-10T00:00:00Z',
      {},
      { ...end, delaysMs: [...end.delaysMs] },
    );
    simulation.pay();
    simulation.replies.push(declined(), { kind: 'unknown' }, declined());
    simulation.runTo('2026-02-10T01:00:05Z');
    expect(simulation.state.openAttempt).not.toBeNull();
    simulation.command('edit', { newNextPaymentAt: Date.parse('2026-02-20T00:00:00Z') });
    simulation.runTo('2026-02-20T00:00:00Z');
    expect(simulation.state.status).toBe('ACTIVE');
    expect(simulation.sentOn).toEqual(['2026-01-10', '2026-02-10', '2026-02-10', '2026-02-20']);
  });

  test('a new payment method is charged as soon as the old one is declined [D-30, D-33]', () => {
    const simulation = withUnknownCharge();
    simulation.replies.push(declined('stolen_card'));
    simulation.command('replacePaymentMethod', { paymentToken: 'p', checkoutSessionId: 'c' });
    simulation.runTo('2026-02-11T00:00:00Z');
    expect(simulation.statuses).toEqual(['CREATED', 'ACTIVE', 'UNPAID', 'ACTIVE']);
    expect(simulation.sends.map((send) => send.trigger)).toEqual([
      'checkout',
      'scheduled',
      'automatic_retry',
    ]);
    expect(iso(nextPaymentAt(simulation.state))).toBe('2026-03-10T00:00:00.000Z');
  });
});

describe('pause and unpause', () => {
  test.each([9_007_199_254_740_991, Date.UTC(2250, 0, 1), Number.NaN, '2027', undefined])(
    'do not accept %s as the next payment date of an unpause [D-06]',
    (newNextPaymentAt) => {
      const simulation = new Simulation('2026-01-10T00:00:00Z');
      simulation.pay();
      simulation.command('pause', {});
      const { decision } = simulation.command('unpause', {
        newNextPaymentAt: newNextPaymentAt as number,
      });
      expect(decision).toEqual({
        ok: false,
        code: 'bad_request',
        message: 'newNextPaymentDate must be epoch milliseconds before the year 2200.',
      });
    },
  );

  test('cause no charge during the pause and exactly one at the new date [D-§4]', () => {
    const simulation = new Simulation('2026-01-10T00:00:00Z');
    simulation.pay();
    simulation.replies.push(declined());
    simulation.runTo('2026-02-10T01:00:00Z');
    simulation.command('pause', {});
    simulation.runTo('2026-06-01T00:00:00Z');
    expect(simulation.sends).toHaveLength(2);
    simulation.command('unpause', { newNextPaymentAt: Date.parse('2026-06-05T00:00:00Z') });
    simulation.runTo('2026-07-05T00:00:00Z');
    expect(simulation.sends.slice(2).map((send) => [iso(send.at), send.cycleNumber])).toEqual([
      ['2026-06-05T00:00:00.000Z', 2],
      ['2026-07-05T00:00:00.000Z', 3],
    ]);
    expect(simulation.statuses).toEqual([
      'CREATED',
      'ACTIVE',
      'UNPAID',
      'PAUSED',
      'ACTIVE',
      'ENDED',
    ]);
    expectNothingFurther(simulation);
  });
});

describe('a cancel', () => {
  test('ends the subscription at once but still records the outcome of a charge that was sent before [D-§4]', () => {
    const simulation = new Simulation('2026-01-10T00:00:00Z');
    simulation.pay();
    simulation.replies.push({ kind: 'unknown' });
    simulation.runTo('2026-02-10T00:00:00Z');
    simulation.command('cancel', { reason: 'cancelled' });
    expect(simulation.state).toMatchObject({ status: 'ENDED', cyclesCharged: 1 });
    simulation.runTo('2026-02-10T01:00:00Z');
    expect(simulation.state).toMatchObject({
      status: 'ENDED',
      endReason: 'cancelled',
      cyclesCharged: 2,
    });
    expect(simulation.events.slice(-3)).toEqual([
      'subscription.ended',
      'intent.success',
      'subscription.cycle_charged',
    ]);
    expectNothingFurther(simulation);
  });
});
