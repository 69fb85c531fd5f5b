import { describe, expect, test } from 'vitest';
import { validateOneTimeCharge } from '../../domain/subscription/validate-command.ts';
import { at, declined, refused, Simulation, subscribed, UNKNOWN } from '../support/simulation.ts';

const TRIAL = { trial: { interval: 'DAY', count: 7 } } as const;

/** What `look` returns in each status of a subscription that is paid, declined, paused and cancelled, and in a trial. */
function inEachStatus(look: (simulation: Simulation) => unknown): Record<string, unknown> {
  const simulation = new Simulation('2026-05-01');
  const seen: Record<string, unknown> = {};
  const trial = subscribed('2026-05-01', TRIAL);
  const note = (of = simulation) => (seen[of.state.status] = look(of));
  for (const step of [
    () => simulation.pay(),
    () => simulation.gives(declined('stolen_card')).runTo('2026-06-01'),
    () => simulation.pause(),
    () => simulation.cancel(),
  ]) {
    step();
    note();
  }
  note(trial);
  return seen;
}

describe('the cancellation of a checkout', () => {
  const NOT_OPEN = refused('The checkout of this payment intent is not open.');
  const cancelCheckout = (simulation: Simulation) =>
    simulation.command('cancel', { reason: 'checkout_cancelled' }).decision;

  test('ends the CREATED subscription with the reason checkout_cancelled [D-41, D-34]', () => {
    const simulation = new Simulation('2026-05-01');
    expect(cancelCheckout(simulation)).toEqual({ ok: true });
    const state = { status: 'ENDED', endReason: 'checkout_cancelled' };
    expect(simulation).toMatchObject({ state, news: 'ended', sent: '' });
  });

  test('is allowed after a declined payment, which leaves the checkout open [D-41]', () => {
    const simulation = new Simulation('2026-05-01').gives(declined());
    simulation.pay();
    expect(cancelCheckout(simulation)).toEqual({ ok: true });
    expect(simulation.path).toBe('CREATED > ENDED');
  });

  test('is refused while the outcome of the payer’s payment is unknown [D-41]', () => {
    const simulation = new Simulation('2026-05-01').gives(UNKNOWN);
    simulation.pay();
    expect(cancelCheckout(simulation)).toEqual(refused('A payment of this intent is in progress.'));
    simulation.runTo('2026-05-01T01:00Z');
    expect(simulation).toMatchObject({ state: { status: 'ACTIVE' }, sent: '2026-05-01 1' });
  });

  test('is refused from the instant at which the checkout expires [D-41]', () => {
    const decisionAt = (instant: string) => {
      const simulation = new Simulation('2026-05-01');
      simulation.now = at(instant);
      return cancelCheckout(simulation);
    };
    expect(decisionAt('2026-05-01T23:59:59.999Z')).toEqual({ ok: true });
    expect(decisionAt('2026-05-02')).toEqual(NOT_OPEN);
  });

  test('is refused in every status but CREATED [D-41]', () => {
    expect(inEachStatus(cancelCheckout)).toEqual({
      ACTIVE: NOT_OPEN,
      UNPAID: NOT_OPEN,
      PAUSED: NOT_OPEN,
      ENDED: NOT_OPEN,
      TRIALING: NOT_OPEN,
    });
  });
});

describe('a one-time charge', () => {
  const ok = { ok: true };

  test('is allowed in TRIALING, ACTIVE, UNPAID and PAUSED and refused in CREATED and ENDED [D-35]', () => {
    expect(validateOneTimeCharge(new Simulation('2026-05-01').state)).toEqual(
      refused('A subscription that is CREATED cannot be charged.'),
    );
    const ENDED = refused('A subscription that is ENDED cannot be charged.');
    const decisions = { ACTIVE: ok, UNPAID: ok, PAUSED: ok, ENDED, TRIALING: ok };
    expect(inEachStatus(({ state }) => validateOneTimeCharge(state))).toEqual(decisions);
  });

  test('is refused without a saved payment method [D-35]', () => {
    const { state } = subscribed('2026-05-01', TRIAL);
    expect(validateOneTimeCharge({ ...state, paymentMethodId: null })).toEqual(
      refused('The subscription has no saved payment method.'),
    );
  });
});
