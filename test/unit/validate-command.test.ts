import { describe, expect, test } from 'vitest';
import { validateOneTimeCharge } from '../../domain/subscription/validate-command.ts';
import { Simulation } from '../support/simulation.ts';

const refused = (message: string) => ({ ok: false, code: 'operation_not_allowed', message });

describe('the cancellation of a checkout', () => {
  const NOT_OPEN = refused('The checkout of this payment intent is not open.');
  const cancelCheckout = (simulation: Simulation) =>
    simulation.command('cancel', { reason: 'checkout_cancelled' }).decision;

  test('ends the CREATED subscription with the reason checkout_cancelled [D-41, D-34]', () => {
    const simulation = new Simulation('2026-05-01T00:00:00Z');
    expect(cancelCheckout(simulation)).toEqual({ ok: true });
    expect(simulation.state).toMatchObject({ status: 'ENDED', endReason: 'checkout_cancelled' });
    expect(simulation.events).toEqual(['subscription.ended']);
    expect(simulation.sends).toEqual([]);
  });

  test('is allowed after a declined payment, which leaves the checkout open [D-41]', () => {
    const simulation = new Simulation('2026-05-01T00:00:00Z');
    simulation.replies.push({ kind: 'declined', code: 'card_declined' });
    simulation.pay();
    expect(cancelCheckout(simulation)).toEqual({ ok: true });
    expect(simulation.statuses).toEqual(['CREATED', 'ENDED']);
  });

  test('is refused while the outcome of the payer’s payment is unknown [D-41]', () => {
    const simulation = new Simulation('2026-05-01T00:00:00Z');
    simulation.replies.push({ kind: 'unknown' });
    simulation.pay();
    expect(cancelCheckout(simulation)).toEqual(refused('A payment of this intent is in progress.'));
    simulation.runTo('2026-05-01T01:00:00Z');
    expect(simulation.state.status).toBe('ACTIVE');
    expect(simulation.sends).toHaveLength(1);
  });

  test('is refused from the instant at which the checkout expires [D-41]', () => {
    const decisionAt = (at: string) => {
      const simulation = new Simulation('2026-05-01T00:00:00Z');
      simulation.now = Date.parse(at);
      return cancelCheckout(simulation);
    };
    expect(decisionAt('2026-05-01T23:59:59.999Z')).toEqual({ ok: true });
    expect(decisionAt('2026-05-02T00:00:00.000Z')).toEqual(NOT_OPEN);
  });

  test('is refused in every status but CREATED [D-41]', () => {
    const simulation = new Simulation('2026-05-01T00:00:00Z');
    simulation.pay();
    const decisions = [[simulation.state.status, cancelCheckout(simulation)]];
    simulation.replies.push({ kind: 'declined', code: 'card_declined' });
    simulation.runTo('2026-06-01T00:00:00Z');
    decisions.push([simulation.state.status, cancelCheckout(simulation)]);
    simulation.command('pause', {});
    decisions.push([simulation.state.status, cancelCheckout(simulation)]);
    simulation.command('cancel', { reason: 'cancelled' });
    decisions.push([simulation.state.status, cancelCheckout(simulation)]);
    const trial = new Simulation('2026-05-01T00:00:00Z', { trial: { interval: 'DAY', count: 7 } });
    trial.pay();
    decisions.push([trial.state.status, cancelCheckout(trial)]);
    expect(decisions).toEqual(
      ['ACTIVE', 'UNPAID', 'PAUSED', 'ENDED', 'TRIALING'].map((status) => [status, NOT_OPEN]),
    );
  });
});

describe('a one-time charge', () => {
  test('is allowed in ACTIVE, UNPAID and PAUSED and refused in CREATED and ENDED [D-35]', () => {
    const simulation = new Simulation('2026-05-01T00:00:00Z');
    const decisions = [validateOneTimeCharge(simulation.state)];
    simulation.pay();
    decisions.push(validateOneTimeCharge(simulation.state));
    simulation.replies.push({ kind: 'declined', code: 'stolen_card' });
    simulation.runTo('2026-06-01T00:00:00Z');
    decisions.push(validateOneTimeCharge(simulation.state));
    simulation.command('pause', {});
    decisions.push(validateOneTimeCharge(simulation.state));
    simulation.command('cancel', { reason: 'cancelled' });
    decisions.push(validateOneTimeCharge(simulation.state));
    expect(decisions).toEqual([
      refused('A subscription that is CREATED cannot be charged.'),
      { ok: true },
      { ok: true },
      { ok: true },
      refused('A subscription that is ENDED cannot be charged.'),
    ]);
  });

  test('is allowed in a trial, and refused without a saved payment method [D-35]', () => {
    const simulation = new Simulation('2026-05-01T00:00:00Z', {
      trial: { interval: 'DAY', count: 7 },
    });
    simulation.pay();
    expect(validateOneTimeCharge(simulation.state)).toEqual({ ok: true });
    expect(validateOneTimeCharge({ ...simulation.state, paymentMethodId: null })).toEqual(
      refused('The subscription has no saved payment method.'),
    );
  });
});
