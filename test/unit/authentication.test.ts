import { describe, expect, test } from 'vitest';
import { at, expectNothingFurther, refused, subscribed, TOKEN } from '../support/simulation.ts';
import type { Simulation } from '../support/simulation.ts';

/**
 * Two answers of the gateway. `ASKS_PAYER`: the bank declines the charge until the payer confirms it.
 * `AWAITS_PAYER`: the charge waits for the payer's confirmation.
 */
const ASKS_PAYER = { kind: 'declined', code: 'authentication_required' } as const;
const AWAITS_PAYER = { kind: 'unknown', awaitsPayer: true } as const;
const PAID = { kind: 'succeeded' } as const;

const UNPAID = 'intent.failed, unpaid, retries_exhausted';

/**
 * Monthly from 10 January. The bank declines the charge of 10 February and asks for the payer's confirmation.
 * `replies` are the gateway's answers to the later requests.
 */
function unpaid(...replies: Simulation['replies']): Simulation {
  const simulation = subscribed('2026-01-10').gives(ASKS_PAYER, ...replies);
  simulation.runTo('2026-02-10');
  expect(simulation).toMatchObject({ sent: '2026-01-10 1, 2026-02-10 2', news: UNPAID });
  simulation.sends.length = 0;
  simulation.events.length = 0;
  return simulation;
}

const confirm = (simulation: Simulation) =>
  simulation.command('authenticatePayment', { checkoutSessionId: 'cs' });

describe('an owed payment that the bank asks the payer to confirm', () => {
  test('is not retried by the plan [D-30]', () => {
    expectNothingFurther(unpaid());
  });

  test('is paid after the payer has confirmed it, and the next cycle keeps its date [D-33, D-§4]', () => {
    const simulation = unpaid(AWAITS_PAYER, PAID);
    expect(confirm(simulation)).toMatchObject({ decision: { ok: true }, result: null });
    expect(simulation.state).toMatchObject({
      status: 'UNPAID',
      cooldownUntilAt: null,
      owed: { automaticAttemptsAt: [at('2026-02-10')], nextRetryAt: null },
    });
    expect(simulation.words).toContain(
      '**UNPAID**: the payer was asked to confirm a payment with the bank; if nothing happens, the payment is withdrawn 22 minutes after it was sent.',
    );
    simulation.runTo('2026-02-10T00:01Z');
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2, owed: null });
    expect(simulation.log.slice(-3).map(({ what, actor }) => [what, actor])).toEqual([
      ['the payer began to confirm the payment', 'payer'],
      ['waiting for the payer', 'gateway'],
      ['cycle 2 paid, 19.99 USD', 'payer'],
    ]);
    simulation.runTo('2026-03-10');
    expect(simulation).toMatchObject({
      sent: '2026-02-10 2 authentication, 2026-03-10 3',
      news: 'intent.success, cycle_charged, active, intent.success, cycle_charged, ended',
    });
    expectNothingFurther(simulation);
  });

  test('stays owed and causes one further intent.failed when the payer does not confirm it [D-30, D-50]', () => {
    const simulation = unpaid(AWAITS_PAYER, ASKS_PAYER);
    confirm(simulation);
    simulation.runTo('2026-02-10T01:00Z');
    const owed = { retriesStopped: true, nextRetryAt: null, authentications: 1 };
    expect(simulation).toMatchObject({
      state: { status: 'UNPAID', openAttempt: null, owed },
      news: 'intent.failed',
    });
    expectNothingFurther(simulation);
  });

  test('can be confirmed at most 10 times, and can be paid with a new method after 10 failures [D-30]', () => {
    const simulation = unpaid(...Array.from({ length: 10 }, () => ASKS_PAYER));
    for (let n = 0; n < 10; n += 1) expect(confirm(simulation).decision).toEqual({ ok: true });
    expect(confirm(simulation).decision).toEqual(
      refused('The payment needs no confirmation by the payer.'),
    );
    simulation.newCard();
    expect(simulation.sent).toMatch(/authentication, 2026-02-10 2 new_method$/);
    expect(simulation.state.status).toBe('ACTIVE');
  });

  test('has no second attempt while the payer confirms it [D-31, D-32]', () => {
    const simulation = unpaid(AWAITS_PAYER, PAID);
    confirm(simulation);
    const pending = refused(
      'The outcome of a payment is not known yet.',
      'payment_outcome_pending',
    );
    expect(simulation.retry().decision).toEqual(pending);
    expect(confirm(simulation).decision).toEqual(pending);
    simulation.runTo('2026-02-10T00:01Z');
    const state = { status: 'ACTIVE', cyclesCharged: 2 };
    expect(simulation).toMatchObject({ state, sent: '2026-02-10 2 authentication' });
  });

  test.for([
    ['cancel', { reason: 'cancelled' }],
    ['pause', {}],
    ['replacePaymentMethod', TOKEN],
  ] as const)('is looked up at once if %s comes during the confirmation', ([kind, fields]) => {
    const simulation = unpaid(AWAITS_PAYER);
    confirm(simulation);
    const { now } = simulation;
    expect(simulation.state.openAttempt?.lookupAt).toBe(now + 10_000);
    simulation.command(kind, fields);
    expect(simulation.state.openAttempt?.lookupAt).toBe(now);
  });

  test('is charged to the new method when the payer gives one instead of the confirmation [D-33]', () => {
    const simulation = unpaid(AWAITS_PAYER, ASKS_PAYER, PAID);
    confirm(simulation);
    simulation.newCard();
    simulation.runTo(simulation.now);
    expect(simulation).toMatchObject({
      sent: '2026-02-10 2 authentication, 2026-02-10 2 automatic_retry',
      state: { status: 'ACTIVE', cyclesCharged: 2 },
      news: 'intent.failed, intent.success, cycle_charged, active',
    });
  });
});

describe('a confirmation by the payer is refused', () => {
  test('while the subscription is ACTIVE [D-§4]', () => {
    expect(confirm(subscribed('2026-01-10')).decision).toEqual(
      refused('A subscription that is ACTIVE cannot be paid with a confirmation.'),
    );
  });

  test('after a decline for which the bank asks no confirmation [D-33]', () => {
    const simulation = unpaid({ kind: 'declined', code: 'stolen_card' });
    simulation.retry();
    expect(confirm(simulation).decision).toEqual(
      refused('The payment needs no confirmation by the payer.'),
    );
  });
});
