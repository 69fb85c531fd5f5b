import { describe, expect, test } from 'vitest';
import { validateOneTimeCharge } from '../../domain/subscription/validate-command.ts';
import { Simulation } from '../support/simulation.ts';

const refused = (message: string) => ({ ok: false, code: 'operation_not_allowed', message });

describe('the cancelled checkout of a first payment', () => {
  const NOT_OPEN = refused('The checkout of this payment intent is not open.');
  const cancelCheckout = (life: Simulation) =>
    life.command('cancel', { reason: 'checkout_cancelled' }).decision;

  test('ends the unpaid subscription with the reason checkout_cancelled [D-41, D-34]', () => {
    const life = new Simulation('2026-05-01T00:00:00Z');
    expect(cancelCheckout(life)).toEqual({ ok: true });
    expect(life.state).toMatchObject({ status: 'ENDED', endReason: 'checkout_cancelled' });
    expect(life.events).toEqual(['subscription.ended']);
    expect(life.sends).toEqual([]);
  });

  test('is allowed after a declined payment, which leaves the checkout open [D-41]', () => {
    const life = new Simulation('2026-05-01T00:00:00Z');
    life.replies.push({ kind: 'declined', code: 'card_declined' });
    life.pay();
    expect(cancelCheckout(life)).toEqual({ ok: true });
    expect(life.statuses).toEqual(['CREATED', 'ENDED']);
  });

  test('is refused while the outcome of the payer’s payment is unknown [D-41]', () => {
    const life = new Simulation('2026-05-01T00:00:00Z');
    life.replies.push({ kind: 'unknown' });
    life.pay();
    expect(cancelCheckout(life)).toEqual(refused('A payment of this intent is on its way.'));
    life.runTo('2026-05-01T01:00:00Z');
    expect(life.state.status).toBe('ACTIVE');
    expect(life.sends).toHaveLength(1);
  });

  test('is refused from the instant at which the checkout expires [D-41]', () => {
    const decisionAt = (at: string) => {
      const life = new Simulation('2026-05-01T00:00:00Z');
      life.now = Date.parse(at);
      return cancelCheckout(life);
    };
    expect(decisionAt('2026-05-01T23:59:59.999Z')).toEqual({ ok: true });
    expect(decisionAt('2026-05-02T00:00:00.000Z')).toEqual(NOT_OPEN);
  });

  test('is refused in every status but CREATED [D-41]', () => {
    const life = new Simulation('2026-05-01T00:00:00Z');
    life.pay();
    const decisions = [[life.state.status, cancelCheckout(life)]];
    life.replies.push({ kind: 'declined', code: 'card_declined' });
    life.runTo('2026-06-01T00:00:00Z');
    decisions.push([life.state.status, cancelCheckout(life)]);
    life.command('pause', {});
    decisions.push([life.state.status, cancelCheckout(life)]);
    life.command('cancel', { reason: 'cancelled' });
    decisions.push([life.state.status, cancelCheckout(life)]);
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
    const life = new Simulation('2026-05-01T00:00:00Z');
    const decisions = [validateOneTimeCharge(life.state)];
    life.pay();
    decisions.push(validateOneTimeCharge(life.state));
    life.replies.push({ kind: 'declined', code: 'stolen_card' });
    life.runTo('2026-06-01T00:00:00Z');
    decisions.push(validateOneTimeCharge(life.state));
    life.command('pause', {});
    decisions.push(validateOneTimeCharge(life.state));
    life.command('cancel', { reason: 'cancelled' });
    decisions.push(validateOneTimeCharge(life.state));
    expect(decisions).toEqual([
      refused('A subscription that is CREATED cannot be charged.'),
      { ok: true },
      { ok: true },
      { ok: true },
      refused('A subscription that is ENDED cannot be charged.'),
    ]);
  });

  test('is allowed in a trial and refused without a saved payment method [D-35]', () => {
    const life = new Simulation('2026-05-01T00:00:00Z', { trial: { interval: 'DAY', count: 7 } });
    life.pay();
    expect(validateOneTimeCharge(life.state)).toEqual({ ok: true });
    expect(validateOneTimeCharge({ ...life.state, paymentMethodId: null })).toEqual(
      refused('The subscription has no saved payment method.'),
    );
  });
});
