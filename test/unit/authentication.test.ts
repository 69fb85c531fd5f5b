import { describe, expect, test } from 'vitest';
import { describe as inWords } from '../../domain/subscription/describe.ts';
import { expectNothingFurther, Simulation } from '../support/simulation.ts';

/**
 * Two answers of the gateway. `ASKS_PAYER`: the bank declines the charge until the payer confirms it.
 * `AWAITS_PAYER`: the charge waits for the payer's confirmation.
 */
const ASKS_PAYER = { kind: 'declined', code: 'authentication_required' } as const;
const AWAITS_PAYER = { kind: 'unknown', awaitsPayer: true } as const;
const TOKEN = { paymentToken: 'ptk', checkoutSessionId: 'cs' };

const FIRST_PAYMENT = ['intent.success', 'subscription.cycle_charged', 'subscription.active'];
const UNPAID = ['intent.failed', 'subscription.unpaid', 'subscription.retries_exhausted'];

/**
 * Creates a subscription of 19.99 USD a month from 10 January, three cycles. The bank declines the charge of
 * 10 February and asks for the payer's confirmation. `replies` are the gateway's answers to the later requests.
 */
function unpaid(...replies: Simulation['replies']): Simulation {
  const simulation = new Simulation('2026-01-10T00:00:00Z');
  simulation.pay();
  simulation.replies.push(ASKS_PAYER, ...replies);
  simulation.runTo('2026-02-10T00:00:00Z');
  return simulation;
}

const triggers = (simulation: Simulation) => simulation.sends.map(({ trigger }) => trigger);
const confirm = (simulation: Simulation) =>
  simulation.command('authenticatePayment', { checkoutSessionId: 'cs' });

describe('an owed payment that the bank asks the payer to confirm', () => {
  test('is not retried by the plan [D-30]', () => {
    const simulation = unpaid();
    expect(simulation.events).toEqual([...FIRST_PAYMENT, ...UNPAID]);
    expectNothingFurther(simulation);
  });

  test('is paid after the payer has confirmed it, and the next cycle keeps its date [D-33, D-§4]', () => {
    const simulation = unpaid(AWAITS_PAYER, { kind: 'succeeded' });
    expect(confirm(simulation)).toMatchObject({ decision: { ok: true }, result: null });
    expect(simulation.state).toMatchObject({
      status: 'UNPAID',
      cooldownUntilAt: null,
      owed: { automaticAttemptsAt: [Date.parse('2026-02-10T00:00:00Z')], nextRetryAt: null },
    });
    expect(inWords(simulation.state, simulation.now)).toContain(
      '**UNPAID**: the payer was asked to confirm a payment with the bank; if nothing happens, the payment is withdrawn 22 minutes after it was sent.',
    );
    simulation.runTo('2026-02-10T00:01:00Z');
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2, owed: null });
    expect(simulation.state.log.slice(-3).map(({ what, actor }) => [what, actor])).toEqual([
      ['the payer began to confirm the payment', 'payer'],
      ['waiting for the payer', 'gateway'],
      ['cycle 2 paid, 19.99 USD', 'payer'],
    ]);
    simulation.runTo('2026-03-10T00:00:00Z');
    expect(simulation.sentOn).toEqual(['2026-01-10', '2026-02-10', '2026-02-10', '2026-03-10']);
    expect(triggers(simulation)).toEqual(['checkout', 'scheduled', 'authentication', 'scheduled']);
    expect(simulation.events).toEqual([
      ...FIRST_PAYMENT,
      ...UNPAID,
      ...FIRST_PAYMENT,
      'intent.success',
      'subscription.cycle_charged',
      'subscription.ended',
    ]);
    expectNothingFurther(simulation);
  });

  test('stays owed and causes one further intent.failed when the payer does not confirm it [D-30, D-50]', () => {
    const simulation = unpaid(AWAITS_PAYER, ASKS_PAYER);
    confirm(simulation);
    simulation.runTo('2026-02-10T01:00:00Z');
    expect(simulation.state).toMatchObject({
      status: 'UNPAID',
      openAttempt: null,
      owed: { retriesStopped: true, nextRetryAt: null, authentications: 1 },
    });
    expect(simulation.events).toEqual([...FIRST_PAYMENT, ...UNPAID, 'intent.failed']);
    expectNothingFurther(simulation);
  });

  test('can be confirmed at most 10 times, and can be paid with a new method after 10 failures [D-30]', () => {
    const simulation = unpaid(...Array.from({ length: 10 }, () => ASKS_PAYER));
    for (let n = 0; n < 10; n += 1) expect(confirm(simulation).decision).toEqual({ ok: true });
    expect(confirm(simulation).decision).toEqual({
      ok: false,
      code: 'operation_not_allowed',
      message: 'The payment needs no confirmation by the payer.',
    });
    simulation.command('replacePaymentMethod', TOKEN);
    expect(triggers(simulation).slice(-2)).toEqual(['authentication', 'new_method']);
    expect(simulation.state.status).toBe('ACTIVE');
  });

  test('has no second attempt while the payer confirms it [D-31, D-32]', () => {
    const simulation = unpaid(AWAITS_PAYER, { kind: 'succeeded' });
    confirm(simulation);
    const pending = {
      ok: false,
      code: 'payment_outcome_pending',
      message: 'The outcome of a payment is not known yet.',
    };
    expect(simulation.command('manualRetry', {}).decision).toEqual(pending);
    expect(confirm(simulation).decision).toEqual(pending);
    simulation.runTo('2026-02-10T00:01:00Z');
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
    expect(triggers(simulation)).toEqual(['checkout', 'scheduled', 'authentication']);
  });

  test.for([
    ['cancel', { reason: 'cancelled' }],
    ['pause', {}],
    ['replacePaymentMethod', TOKEN],
  ] as const)('is looked up at once if %s comes during the confirmation', ([kind, fields]) => {
    const simulation = unpaid(AWAITS_PAYER);
    confirm(simulation);
    const at = simulation.now;
    expect(simulation.state.openAttempt?.lookupAt).toBe(at + 10_000);
    simulation.command(kind, fields);
    expect(simulation.state.openAttempt?.lookupAt).toBe(at);
  });

  test('is charged to the new method when the payer gives one instead of the confirmation [D-33]', () => {
    const simulation = unpaid(AWAITS_PAYER, ASKS_PAYER, { kind: 'succeeded' });
    confirm(simulation);
    simulation.command('replacePaymentMethod', TOKEN);
    simulation.runTo(simulation.now);
    expect(triggers(simulation).slice(2)).toEqual(['authentication', 'automatic_retry']);
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
    expect(simulation.events).toEqual([
      ...FIRST_PAYMENT,
      ...UNPAID,
      'intent.failed',
      ...FIRST_PAYMENT,
    ]);
  });
});

describe('a confirmation by the payer is refused', () => {
  const refusal = (simulation: Simulation) => {
    const { decision } = confirm(simulation);
    return decision.ok ? null : [decision.code, decision.message];
  };

  test('while the subscription is ACTIVE [D-§4]', () => {
    const simulation = new Simulation('2026-01-10T00:00:00Z');
    simulation.pay();
    expect(refusal(simulation)).toEqual([
      'operation_not_allowed',
      'A subscription that is ACTIVE cannot be paid with a confirmation.',
    ]);
  });

  test('after a decline for which the bank asks no confirmation [D-33]', () => {
    const simulation = unpaid({ kind: 'declined', code: 'stolen_card' });
    simulation.command('manualRetry', {});
    expect(refusal(simulation)).toEqual([
      'operation_not_allowed',
      'The payment needs no confirmation by the payer.',
    ]);
  });
});
