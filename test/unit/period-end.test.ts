import { describe, expect, test } from 'vitest';
import type { Terms } from '../../domain/subscription/terms.ts';
import { cancelAt } from '../../domain/subscription/state.ts';
import { wakeAt } from '../../domain/subscription/decide.ts';
import {
  declined,
  expectNothingFurther,
  iso,
  refused,
  Simulation,
  subscribed,
  UNKNOWN,
} from '../support/simulation.ts';

/** Monthly from 10 January, on 20 January. */
function on20January(terms: Partial<Terms> = {}): Simulation {
  const simulation = subscribed('2026-01-10', terms);
  simulation.runTo('2026-01-20');
  simulation.sends.length = 0;
  return simulation;
}

const TRIAL = { trial: { interval: 'DAY', count: 14 } } as const;
const DAILY = { interval: 'DAY', intervalCount: 1 } as const;
const endsIn = ({ state }: Simulation) => iso(cancelAt(state));
const wakesOn = ({ state }: Simulation) => iso(wakeAt(state));

describe('a cancellation at the end of the period', () => {
  test('charges nothing more, and ends the subscription when the paid period ends [D-§4]', () => {
    const simulation = on20January();
    expect(simulation.cancelAtPeriodEnd().decision).toEqual({ ok: true });
    expect(simulation).toMatchObject({ paidUntil: '2026-02-10', nextAt: null });
    expect([endsIn(simulation), wakesOn(simulation)]).toEqual(['2026-02-10', '2026-02-10']);
    expect(simulation.upcoming()).toBe('');
    expect(simulation.words).toContain(
      '**ACTIVE**: cancelled; nothing is charged, and it ends on 2026-02-10 00:00 UTC.',
    );
    const entry = { what: 'cancelled at 2026-02-10T00:00:00.000Z' };
    expect(simulation.log.at(-1)).toMatchObject(entry);
    simulation.runTo('2026-02-09T23:59:59.999Z');
    expect(simulation.state.status).toBe('ACTIVE');
    simulation.runTo('2026-02-10');
    expect(simulation).toMatchObject({
      state: { status: 'ENDED', endReason: 'cancelled', cyclesCharged: 1 },
      paidUntil: '2026-02-10',
      news: 'cancel_scheduled, ended',
    });
    expectNothingFurther(simulation);
  });

  test('ends the subscription without a charge when its trial ends [D-§4]', () => {
    const simulation = on20January(TRIAL);
    expect(simulation.cancelAtPeriodEnd().decision).toEqual({ ok: true });
    expect(endsIn(simulation)).toBe('2026-01-24');
    simulation.runTo('2026-01-24');
    const state = { status: 'ENDED', endReason: 'cancelled' };
    expect(simulation).toMatchObject({ state, sent: '', news: 'cancel_scheduled, ended' });
    expectNothingFurther(simulation);
  });

  test('is undone by a resume, and billing continues on the same dates [D-§4]', () => {
    const simulation = on20January();
    simulation.cancelAtPeriodEnd();
    simulation.runTo('2026-02-09T23:59:59.999Z');
    expect(simulation.resume().decision).toEqual({ ok: true });
    expect(simulation.nextAt).toBe('2026-02-10');
    simulation.runTo('2026-12-31');
    expect(simulation.sent).toBe('2026-02-10 2, 2026-03-10 3');
    expect(simulation.state.endReason).toBe('completed');
    expectNothingFurther(simulation);
  });

  test('cannot be undone any more when the period has ended and the end is not recorded yet [D-§4]', () => {
    const simulation = on20January();
    simulation.cancelAtPeriodEnd();
    simulation.now = Date.parse('2026-02-10');
    expect(simulation.resume().decision).toEqual(
      refused('The subscription ended at 2026-02-10T00:00:00.000Z.'),
    );
    simulation.runTo('2026-02-10');
    expect(simulation).toMatchObject({ state: { status: 'ENDED' }, sent: '' });
    expectNothingFurther(simulation);
  });

  test('is replaced by an immediate cancellation [D-§4]', () => {
    const simulation = on20January();
    simulation.cancelAtPeriodEnd();
    expect(simulation.cancel().decision).toEqual({ ok: true });
    expect(simulation.state.status).toBe('ENDED');
    expectNothingFurther(simulation);
  });

  test.each(['cancelAtPeriodEnd', 'pause'] as const)(
    'makes the subscription refuse %s, and the refusal names the end date [D-§4]',
    (command) => {
      const simulation = on20January();
      simulation.cancelAtPeriodEnd();
      const before = structuredClone(simulation.state);
      expect(simulation[command]().decision).toEqual(
        refused(
          'The subscription is cancelled and ends at 2026-02-10T00:00:00.000Z. It can be resumed until then.',
        ),
      );
      expect(simulation.state).toEqual(before);
    },
  );

  test.each(['CREATED', 'UNPAID', 'ENDED'] as const)(
    'is refused in %s, and so is a resume [D-§4]',
    (status) => {
      const simulation = new Simulation('2026-01-10');
      if (status !== 'CREATED') simulation.pay();
      if (status === 'UNPAID') simulation.gives(declined()).runTo('2026-02-10');
      if (status === 'ENDED') simulation.cancel();
      expect([simulation.state.status, simulation.cancelAtPeriodEnd().decision]).toEqual([
        status,
        refused(`A subscription that is ${status} cannot be cancelled at the end of its period.`),
      ]);
      expect(simulation.resume().decision).toEqual(
        refused(`A subscription that is ${status} cannot be resumed.`),
      );
    },
  );

  test('of a paused subscription replaces the end of its pause, and can be undone; an unpause must wait for that [D-§4]', () => {
    const simulation = on20January();
    simulation.pause('2026-02-01');
    expect(simulation.cancelAtPeriodEnd().decision).toEqual({ ok: true });
    expect([endsIn(simulation), wakesOn(simulation)]).toEqual(['2026-02-10', '2026-02-10']);
    expect(simulation.unpause('2026-02-05').decision).toEqual(
      refused(
        'The subscription is cancelled and ends at 2026-02-10T00:00:00.000Z. It can be resumed until then.',
      ),
    );
    expect(simulation.resume().decision).toEqual({ ok: true });
    expect([simulation.state.status, wakesOn(simulation)]).toEqual(['PAUSED', null]);
    simulation.cancelAtPeriodEnd();
    simulation.runTo('2026-02-10');
    expect(simulation).toMatchObject({
      state: { status: 'ENDED', endReason: 'cancelled', cyclesCharged: 1 },
      sent: '',
      news: 'paused, cancel_scheduled, resumed, cancel_scheduled, ended',
    });
    expectNothingFurther(simulation);
  });

  test('of a subscription whose pause has outlasted its paid period ends it at once [D-§4]', () => {
    const simulation = on20January();
    simulation.pause();
    simulation.runTo('2026-03-01');
    expect(simulation.cancelAtPeriodEnd().decision).toEqual({ ok: true });
    simulation.runTo('2026-03-01');
    expect(simulation).toMatchObject({
      state: { status: 'ENDED', endReason: 'cancelled' },
      news: 'paused, cancel_scheduled, ended',
    });
    expectNothingFurther(simulation);
  });

  test('is required before a resume; otherwise the resume is refused [D-§4]', () => {
    const { decision } = on20January().resume();
    expect(decision).toEqual(refused('The subscription is not cancelled.'));
  });

  test('is not mistaken for a pause: the refusal of resume names unpause, and the reverse [D-§4]', () => {
    const paused = on20January();
    paused.pause();
    expect(paused.resume().decision).toEqual(
      refused('The subscription is not cancelled. To end its pause, unpause it.'),
    );
    const cancelled = on20January();
    cancelled.cancelAtPeriodEnd();
    expect(cancelled.unpause('2026-02-05').decision).toEqual(
      refused(
        'A subscription that is ACTIVE cannot be unpaused. To withdraw its cancellation, resume it.',
      ),
    );
  });

  test('moves to the end of the next period when a charge of unknown outcome succeeds [D-§4, D-34]', () => {
    const simulation = on20January().gives(UNKNOWN);
    simulation.runTo('2026-02-10');
    expect(simulation.cancelAtPeriodEnd().decision).toEqual({ ok: true });
    simulation.runTo('2026-02-11');
    expect(simulation).toMatchObject({ state: { status: 'ACTIVE' }, paidUntil: '2026-03-10' });
    simulation.runTo('2026-03-10');
    expect(simulation).toMatchObject({
      state: { status: 'ENDED', cyclesCharged: 2 },
      news: 'cancel_scheduled, intent.success, cycle_charged, ended',
    });
    expectNothingFurther(simulation);
  });

  test('ends the subscription at once when a charge of unknown outcome is declined [D-§4, D-30]', () => {
    const simulation = on20January().gives(UNKNOWN, declined());
    simulation.runTo('2026-02-10');
    simulation.cancelAtPeriodEnd();
    simulation.runTo('2026-02-11');
    expect(simulation).toMatchObject({
      state: { status: 'ENDED', endReason: 'cancelled' },
      news: 'cancel_scheduled, intent.failed, ended',
    });
    expectNothingFurther(simulation);
  });

  test('can be undone by a resume after a hard decline, which leads to UNPAID without another charge [D-§4, D-30]', () => {
    const simulation = on20January(TRIAL).gives(UNKNOWN, declined('stolen_card'));
    simulation.pause('2026-01-21');
    simulation.runTo('2026-01-21');
    expect(simulation.cancelAtPeriodEnd().decision).toEqual({ ok: true });
    simulation.runTo('2026-01-21T01:00Z');
    const owed = { lastDeclineCode: 'stolen_card', retriesStopped: true, nextRetryAt: null };
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', owed });
    simulation.resume();
    simulation.runTo('2027-01-20');
    expect(simulation).toMatchObject({
      state: { status: 'UNPAID', cyclesCharged: 0 },
      news: 'paused, active, cancel_scheduled, intent.failed, resumed, unpaid',
    });
    expectNothingFurther(simulation);
  });

  test('can be undone by a resume after a decline and a new card, with which the owed cycle is charged once as due [D-§4, D-30, D-33]', () => {
    const simulation = on20January().gives(UNKNOWN, declined());
    simulation.edit('2026-01-21');
    simulation.runTo('2026-01-21');
    simulation.newCard();
    expect(simulation.cancelAtPeriodEnd().decision).toEqual({ ok: true });
    simulation.runTo('2026-01-21T01:00Z');
    const owed = { cycleNumber: 2, lastDeclineCode: 'card_declined', nextRetryAt: null };
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', owed });
    simulation.resume();
    simulation.runTo('2026-12-31');
    expect(simulation).toMatchObject({
      sent: '2026-01-21 2, 2026-01-21T01:00 2, 2026-02-21 3',
      news: 'edited, cancel_scheduled, intent.failed, resumed, intent.success, cycle_charged, intent.success, cycle_charged, ended',
    });
    expectNothingFurther(simulation);
  });

  test('makes no charge for the dates that passed until a resume; then one cycle is charged, and the next on its date [D-§4]', () => {
    const simulation = on20January({ cycleCount: 4 });
    simulation.edit('2026-01-21', DAILY);
    simulation.cancelAtPeriodEnd();
    simulation.runTo('2026-02-01T12:00Z');
    simulation.resume();
    simulation.runTo('2026-12-31');
    expect(simulation.sent).toBe('2026-02-01T12:00 2, 2026-02-02 3, 2026-02-03 4');
    expect(simulation.state.endReason).toBe('completed');
    expectNothingFurther(simulation);
  });

  test('leaves a charge of unknown outcome for the date on which it began; the dates until the resume are not charged [D-§4]', () => {
    const review = { kind: 'review', reason: 'the gateway refused the look-up' } as const;
    const simulation = on20January({ cycleCount: 4 }).gives(UNKNOWN, review, review);
    simulation.edit('2026-01-21', DAILY);
    simulation.runTo('2026-01-21');
    simulation.cancelAtPeriodEnd();
    simulation.runTo('2026-01-22T12:00Z');
    simulation.resume();
    simulation.runTo('2026-12-31');
    expect(simulation.sent).toBe('2026-01-21 2, 2026-01-23T00:00:10 3, 2026-01-24 4');
    expect(simulation.state.endReason).toBe('completed');
    expectNothingFurther(simulation);
  });
});

describe('a pause with a date', () => {
  test('ends on its date with one charge and makes this date the new anchor [D-§4]', () => {
    const simulation = on20January();
    expect(simulation.pause('2026-03-05').decision).toEqual({ ok: true });
    expect([wakesOn(simulation), simulation.nextAt]).toEqual(['2026-03-05', null]);
    expect(simulation.words).toContain(
      '**PAUSED**: nothing is charged until it is unpaused, or until 2026-03-05 00:00 UTC.',
    );
    simulation.runTo('2026-12-31');
    expect(simulation).toMatchObject({
      sent: '2026-03-05 2, 2026-04-05 3',
      news: 'paused, active, intent.success, cycle_charged, intent.success, cycle_charged, ended',
    });
    expectNothingFurther(simulation);
  });

  test('ends with a charge of the owed cycle when a cycle is owed [D-§4]', () => {
    const simulation = on20January().gives(declined());
    simulation.runTo('2026-02-10');
    simulation.pause('2026-03-05');
    simulation.runTo('2026-03-31');
    expect(simulation.sent).toBe('2026-02-10 2, 2026-03-05 2');
  });

  test('is overridden by an unpause; the date of the first pause does not apply to the next pause [IF-4.8, D-§4]', () => {
    const simulation = on20January();
    simulation.pause('2026-03-05');
    simulation.unpause('2026-02-10');
    simulation.runTo('2026-02-10');
    simulation.pause();
    expect(wakesOn(simulation)).toBeNull();
    expectNothingFurther(simulation);
  });

  test('is refused when its date has passed or is no date [D-§4]', () => {
    const simulation = on20January();
    const pauseUntil = (resumeAt: number) => simulation.command('pause', { resumeAt }).decision;
    const message = 'resumeAt must lie in the future.';
    expect(pauseUntil(simulation.now)).toEqual(refused(message, 'bad_request'));
    expect(pauseUntil(1.5)).toMatchObject({ ok: false, code: 'bad_request' });
    expect(simulation.state.status).toBe('ACTIVE');
  });

  test('ends on a later date that a further pause sets, and its charges are upcoming [D-§4, D-§7]', () => {
    const simulation = on20January();
    simulation.pause('2026-02-10');
    expect(simulation.pause('2026-03-05').decision).toEqual({ ok: true });
    expect([simulation.state.status, wakesOn(simulation)]).toEqual(['PAUSED', '2026-03-05']);
    expect(simulation.upcoming()).toBe('2026-03-05 2 1999, 2026-04-05 3 1999');
    simulation.runTo('2026-12-31');
    expect(simulation.sent).toBe('2026-03-05 2, 2026-04-05 3');
    expect(simulation.news).toMatch(/^paused, active, intent/);
    expectNothingFurther(simulation);
  });

  test('keeps its date when a further pause gives none, which is refused; without a date nothing is upcoming [D-§4]', () => {
    const simulation = on20January();
    simulation.pause();
    expect(simulation.upcoming()).toBe('');
    simulation.pause('2026-03-05');
    const { decision } = simulation.pause();
    expect(decision).toEqual(refused('A subscription that is PAUSED cannot be paused.'));
    expect(wakesOn(simulation)).toBe('2026-03-05');
  });

  test('has one upcoming charge without a date while a hard decline of the owed cycle waits for another card [D-30, D-§4]', () => {
    const simulation = on20January().gives(declined('lost_card'));
    simulation.runTo('2026-02-10');
    simulation.pause('2026-03-05');
    expect(simulation.upcoming(1)).toBe('null 2 1999');
  });

  test('ends when the subscription is cancelled [D-§4]', () => {
    const simulation = on20January();
    simulation.pause('2026-03-05');
    simulation.cancel();
    expect(simulation.state.status).toBe('ENDED');
    expectNothingFurther(simulation);
  });
});

describe('the period of a payment that becomes known after its dates were moved', () => {
  test.each<[string, string, (simulation: Simulation) => void]>([
    ['an edited date', 'ACTIVE', (simulation) => simulation.edit('2026-02-14')],
    [
      'an edited date and interval',
      'ACTIVE',
      (simulation) => simulation.edit('2026-02-14', { interval: 'YEAR', intervalCount: 1 }),
    ],
    [
      'an edited date, then a cancellation',
      'ENDED',
      (simulation) => {
        simulation.edit('2026-02-14');
        simulation.cancel();
      },
    ],
    [
      'a pause and an unpause',
      'ACTIVE',
      (simulation) => {
        simulation.pause();
        simulation.unpause('2026-02-14');
      },
    ],
    [
      'a date stored in a pause',
      'PAUSED',
      (simulation) => {
        simulation.pause();
        simulation.edit('2026-12-01');
      },
    ],
  ])('ends as if the payment had come before %s [D-15, D-34]', (_name, status, moveDates) => {
    const simulation = on20January().gives(UNKNOWN);
    simulation.runTo('2026-02-10');
    moveDates(simulation);
    simulation.runTo('2026-02-10T01:00Z');
    const state = { status, cyclesCharged: 2 };
    expect(simulation).toMatchObject({ state, paidUntil: '2026-03-10', sent: '2026-02-10 2' });
  });

  test('ends so also when the payment is of the last cycle [D-15, D-34]', () => {
    const simulation = on20January({ cycleCount: 2 }).gives(UNKNOWN);
    simulation.runTo('2026-02-10');
    simulation.edit('2026-02-14');
    simulation.runTo('2026-02-10T01:00Z');
    const state = { status: 'ENDED', endReason: 'completed' };
    expect(simulation).toMatchObject({ state, paidUntil: '2026-03-10' });
    expectNothingFurther(simulation);
  });

  test('ends one interval after an unpause that gives its date to the owed cycle [D-§4, D-34]', () => {
    const simulation = on20January().gives(declined('lost_card'), UNKNOWN);
    simulation.runTo('2026-02-12');
    simulation.retry();
    simulation.pause();
    simulation.edit('2026-12-01');
    simulation.unpause('2026-03-20');
    simulation.runTo('2026-02-13');
    const state = { status: 'ACTIVE', cyclesCharged: 2 };
    expect(simulation).toMatchObject({ state, paidUntil: '2026-04-20', nextAt: '2026-04-20' });
  });

  test('does not outlast the dates of a later unpause [D-15, D-34]', () => {
    const simulation = on20January().gives(UNKNOWN);
    simulation.runTo('2026-02-10');
    simulation.pause();
    simulation.edit('2026-12-01');
    simulation.runTo('2026-02-11');
    simulation.unpause('2026-03-20');
    simulation.runTo('2026-03-20');
    expect(simulation.sent).toBe('2026-02-10 2, 2026-03-20 3');
    expect(simulation.paidUntil).toBe('2026-04-20');
    expectNothingFurther(simulation);
  });
});
