import { describe, expect, test } from 'vitest';
import type { Terms } from '../../domain/subscription/state.ts';
import { cancelAt, nextPaymentAt } from '../../domain/subscription/state.ts';
import { describe as inWords } from '../../domain/subscription/describe.ts';
import { wakeAt } from '../../domain/subscription/decide.ts';
import { upcomingCharges } from '../../domain/subscription/upcoming.ts';
import { expectNothingFurther, Simulation } from '../support/simulation.ts';

const declined = (code = 'card_declined') => ({ kind: 'declined', code }) as const;
const at = (iso: string): number => Date.parse(iso);
const FEB_10 = at('2026-02-10T00:00:00Z');

/** Creates a subscription of 19.99 USD a month from 10 January, and runs the clock to 20 January. */
function subscribed(terms: Partial<Terms> = {}): Simulation {
  const simulation = new Simulation('2026-01-10T00:00:00Z', terms);
  simulation.pay();
  simulation.runTo('2026-01-20T00:00:00Z');
  simulation.events.length = 0;
  return simulation;
}

const isoOf = (instant: number): string => new Date(instant).toISOString();

const sent = (simulation: Simulation) =>
  simulation.sends.slice(1).map(({ at: sentAt, cycleNumber }) => [isoOf(sentAt), cycleNumber]);

const cancel = (simulation: Simulation) =>
  simulation.command('cancel', { reason: 'cancelled', atPeriodEnd: true }).decision;

describe('a cancellation at the end of the period', () => {
  test('charges nothing more, and ends the subscription when the paid period ends [D-§4]', () => {
    const simulation = subscribed();
    expect(cancel(simulation)).toEqual({ ok: true });
    const { state } = simulation;
    expect(state).toMatchObject({ status: 'ACTIVE', currentPeriodEndAt: FEB_10 });
    expect([cancelAt(state), nextPaymentAt(state), wakeAt(state)]).toEqual([FEB_10, null, FEB_10]);
    expect(upcomingCharges(state, 10, simulation.now)).toEqual([]);
    expect(inWords(state, simulation.now)).toContain(
      '**ACTIVE**: cancelled; nothing is charged, and it ends on 2026-02-10 00:00 UTC.',
    );
    expect(state.log.at(-1)).toMatchObject({ what: 'cancelled at 2026-02-10T00:00:00.000Z' });
    simulation.runTo(FEB_10 - 1);
    expect(simulation.state.status).toBe('ACTIVE');
    simulation.runTo(FEB_10);
    expect(simulation.state).toMatchObject({
      status: 'ENDED',
      endReason: 'cancelled',
      cyclesCharged: 1,
      currentPeriodEndAt: FEB_10,
    });
    expect(simulation.events).toEqual(['subscription.ended']);
    expectNothingFurther(simulation);
  });

  test('ends the subscription without a charge when its trial ends [D-§4]', () => {
    const simulation = subscribed({ trial: { interval: 'DAY', count: 14 } });
    expect(cancel(simulation)).toEqual({ ok: true });
    expect(cancelAt(simulation.state)).toBe(at('2026-01-24T00:00:00Z'));
    simulation.runTo('2026-01-24T00:00:00Z');
    expect(simulation.state).toMatchObject({ status: 'ENDED', endReason: 'cancelled' });
    expect([simulation.sends, simulation.events]).toEqual([[], ['subscription.ended']]);
    expectNothingFurther(simulation);
  });

  test('is undone by a resume, and billing continues on the same dates [D-§4]', () => {
    const simulation = subscribed();
    cancel(simulation);
    simulation.runTo(FEB_10 - 1);
    expect(simulation.command('resume', {}).decision).toEqual({ ok: true });
    expect(nextPaymentAt(simulation.state)).toBe(FEB_10);
    simulation.runTo('2026-12-31T00:00:00Z');
    expect(sent(simulation)).toEqual([
      ['2026-02-10T00:00:00.000Z', 2],
      ['2026-03-10T00:00:00.000Z', 3],
    ]);
    expect(simulation.state.endReason).toBe('completed');
    expectNothingFurther(simulation);
  });

  test('is replaced by an immediate cancellation [D-§4]', () => {
    const simulation = subscribed();
    cancel(simulation);
    expect(simulation.command('cancel', { reason: 'cancelled' }).decision).toEqual({ ok: true });
    expect(simulation.state.status).toBe('ENDED');
    expectNothingFurther(simulation);
  });

  test.each(['a second cancellation', 'a pause'])(
    'makes the subscription refuse %s, and the refusal names the end date [D-§4]',
    (what) => {
      const simulation = subscribed();
      cancel(simulation);
      const before = structuredClone(simulation.state);
      const second =
        what === 'a pause' ? simulation.command('pause', {}).decision : cancel(simulation);
      expect(second).toEqual({
        ok: false,
        code: 'operation_not_allowed',
        message:
          'The subscription is cancelled and ends at 2026-02-10T00:00:00.000Z. It can be resumed until then.',
      });
      expect(simulation.state).toEqual(before);
    },
  );

  test.each(['CREATED', 'UNPAID', 'PAUSED', 'ENDED'] as const)(
    'is refused in %s, and so is a resume [D-§4]',
    (status) => {
      const simulation = new Simulation('2026-01-10T00:00:00Z');
      if (status !== 'CREATED') simulation.pay();
      if (status === 'UNPAID') simulation.replies.push(declined());
      simulation.runTo(status === 'UNPAID' ? FEB_10 : simulation.now);
      if (status === 'PAUSED') simulation.command('pause', {});
      if (status === 'ENDED') simulation.command('cancel', { reason: 'cancelled' });
      expect(simulation.state.status).toBe(status);
      expect(cancel(simulation)).toEqual({
        ok: false,
        code: 'operation_not_allowed',
        message: `A subscription that is ${status} cannot be cancelled at the end of its period.`,
      });
      expect(simulation.command('resume', {}).decision).toMatchObject({
        ok: false,
        message: `A subscription that is ${status} cannot be resumed.`,
      });
    },
  );

  test('is required before a resume; otherwise the resume is refused [D-§4]', () => {
    expect(subscribed().command('resume', {}).decision).toEqual({
      ok: false,
      code: 'operation_not_allowed',
      message: 'The subscription is not cancelled.',
    });
  });

  test('moves to the end of the next period when a charge of unknown outcome succeeds [D-§4, D-34]', () => {
    const simulation = subscribed();
    simulation.replies.push({ kind: 'unknown' });
    simulation.runTo(FEB_10);
    expect(cancel(simulation)).toEqual({ ok: true });
    simulation.runTo('2026-02-11T00:00:00Z');
    const paidUntil = at('2026-03-10T00:00:00Z');
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', currentPeriodEndAt: paidUntil });
    simulation.runTo(paidUntil);
    expect(simulation.state).toMatchObject({ status: 'ENDED', cyclesCharged: 2 });
    expect(simulation.events).toEqual([
      'intent.success',
      'subscription.cycle_charged',
      'subscription.ended',
    ]);
    expectNothingFurther(simulation);
  });

  test('ends the subscription at once when a charge of unknown outcome is declined [D-§4, D-30]', () => {
    const simulation = subscribed();
    simulation.replies.push({ kind: 'unknown' }, declined());
    simulation.runTo(FEB_10);
    cancel(simulation);
    simulation.runTo('2026-02-11T00:00:00Z');
    expect(simulation.state).toMatchObject({ status: 'ENDED', endReason: 'cancelled' });
    expect(simulation.events).toEqual(['intent.failed', 'subscription.ended']);
    expectNothingFurther(simulation);
  });

  test('can be undone by a resume after a hard decline, which leads to UNPAID without another charge [D-§4, D-30]', () => {
    const simulation = subscribed({ trial: { interval: 'DAY', count: 14 } });
    const early = at('2026-01-21T00:00:00Z');
    simulation.command('pause', { resumeAt: early });
    simulation.replies.push({ kind: 'unknown' }, declined('stolen_card'));
    simulation.runTo(early);
    expect(cancel(simulation)).toEqual({ ok: true });
    simulation.runTo(early + 3_600_000);
    expect(simulation.state).toMatchObject({
      status: 'ACTIVE',
      owed: { lastDeclineCode: 'stolen_card', retriesStopped: true, nextRetryAt: null },
    });
    simulation.command('resume', {});
    simulation.runTo('2027-01-20T00:00:00Z');
    expect(simulation.state).toMatchObject({ status: 'UNPAID', cyclesCharged: 0 });
    expect(simulation.events).toEqual([
      'subscription.paused',
      'subscription.active',
      'intent.failed',
      'subscription.unpaid',
    ]);
    expectNothingFurther(simulation);
  });

  test('can be undone by a resume after a decline and a new card, with which the owed cycle is charged once as due [D-§4, D-30, D-33]', () => {
    const simulation = subscribed();
    const early = at('2026-01-21T00:00:00Z');
    simulation.command('edit', { newNextPaymentAt: early });
    simulation.replies.push({ kind: 'unknown' }, declined());
    simulation.runTo(early);
    simulation.command('replacePaymentMethod', { paymentToken: 'ptk', checkoutSessionId: 'cs' });
    expect(cancel(simulation)).toEqual({ ok: true });
    simulation.runTo(early + 3_600_000);
    expect(simulation.state).toMatchObject({
      status: 'ACTIVE',
      owed: { cycleNumber: 2, lastDeclineCode: 'card_declined', nextRetryAt: null },
    });
    simulation.command('resume', {});
    simulation.runTo('2026-12-31T00:00:00Z');
    expect(simulation.sends.slice(1).map(({ at, trigger }) => [isoOf(at), trigger])).toEqual([
      ['2026-01-21T00:00:00.000Z', 'scheduled'],
      ['2026-01-21T01:00:00.000Z', 'scheduled'],
      ['2026-02-21T00:00:00.000Z', 'scheduled'],
    ]);
    expect(simulation.events).toEqual([
      'intent.failed',
      'intent.success',
      'subscription.cycle_charged',
      'intent.success',
      'subscription.cycle_charged',
      'subscription.ended',
    ]);
    expectNothingFurther(simulation);
  });

  test('makes no charge for the dates that passed until a resume; then one cycle is charged, and the next on its date [D-§4]', () => {
    const simulation = subscribed({ cycleCount: 4 });
    const daily = { interval: 'DAY', intervalCount: 1 } as const;
    simulation.command('edit', { ...daily, newNextPaymentAt: at('2026-01-21T00:00:00Z') });
    cancel(simulation);
    simulation.runTo('2026-02-01T12:00:00Z');
    simulation.command('resume', {});
    simulation.runTo('2026-12-31T00:00:00Z');
    expect(sent(simulation)).toEqual([
      ['2026-02-01T12:00:00.000Z', 2],
      ['2026-02-02T00:00:00.000Z', 3],
      ['2026-02-03T00:00:00.000Z', 4],
    ]);
    expect(simulation.state.endReason).toBe('completed');
    expectNothingFurther(simulation);
  });

  test('leaves a charge of unknown outcome for the date on which it began; the dates until the resume are not charged [D-§4]', () => {
    const simulation = subscribed({ cycleCount: 4 });
    const first = at('2026-01-21T00:00:00Z');
    const review = { kind: 'review', reason: 'the gateway refused the look-up' } as const;
    simulation.command('edit', { interval: 'DAY', intervalCount: 1, newNextPaymentAt: first });
    simulation.replies.push({ kind: 'unknown' }, review, review);
    simulation.runTo(first);
    cancel(simulation);
    simulation.runTo('2026-01-22T12:00:00Z');
    simulation.command('resume', {});
    simulation.runTo('2026-12-31T00:00:00Z');
    expect(sent(simulation)).toEqual([
      ['2026-01-21T00:00:00.000Z', 2],
      ['2026-01-23T00:00:10.000Z', 3],
      ['2026-01-24T00:00:00.000Z', 4],
    ]);
    expect(simulation.state.endReason).toBe('completed');
    expectNothingFurther(simulation);
  });
});

describe('a pause with a date', () => {
  const MARCH_5 = at('2026-03-05T00:00:00Z');

  test('ends on its date with one charge and makes this date the new anchor [D-§4]', () => {
    const simulation = subscribed();
    expect(simulation.command('pause', { resumeAt: MARCH_5 }).decision).toEqual({ ok: true });
    expect([wakeAt(simulation.state), nextPaymentAt(simulation.state)]).toEqual([MARCH_5, null]);
    expect(inWords(simulation.state, simulation.now)).toContain(
      '**PAUSED**: nothing is charged until it is unpaused, or until 2026-03-05 00:00 UTC.',
    );
    simulation.runTo('2026-12-31T00:00:00Z');
    expect(sent(simulation)).toEqual([
      ['2026-03-05T00:00:00.000Z', 2],
      ['2026-04-05T00:00:00.000Z', 3],
    ]);
    expect(simulation.events).toEqual([
      'subscription.paused',
      'subscription.active',
      'intent.success',
      'subscription.cycle_charged',
      'intent.success',
      'subscription.cycle_charged',
      'subscription.ended',
    ]);
    expectNothingFurther(simulation);
  });

  test('ends with a charge of the owed cycle when a cycle is owed [D-§4]', () => {
    const simulation = subscribed();
    simulation.replies.push(declined());
    simulation.runTo(FEB_10);
    simulation.command('pause', { resumeAt: MARCH_5 });
    simulation.runTo('2026-03-31T00:00:00Z');
    expect(sent(simulation)).toEqual([
      ['2026-02-10T00:00:00.000Z', 2],
      ['2026-03-05T00:00:00.000Z', 2],
    ]);
  });

  test('is overridden by an unpause; the date of the first pause does not apply to the next pause [IF-4.8, D-§4]', () => {
    const simulation = subscribed();
    simulation.command('pause', { resumeAt: MARCH_5 });
    simulation.command('unpause', { newNextPaymentAt: FEB_10 });
    simulation.runTo(FEB_10);
    simulation.command('pause', {});
    expect(wakeAt(simulation.state)).toBeNull();
    expectNothingFurther(simulation);
  });

  test('is refused when its date has passed or is no date [D-§4]', () => {
    const simulation = subscribed();
    const refused = (resumeAt: number) => simulation.command('pause', { resumeAt }).decision;
    expect(refused(simulation.now)).toEqual({
      ok: false,
      code: 'bad_request',
      message: 'resumeAt must lie in the future.',
    });
    expect(refused(1.5)).toMatchObject({ ok: false, code: 'bad_request' });
    expect(simulation.state.status).toBe('ACTIVE');
  });

  test('ends on a later date that a further pause sets, and its charges are upcoming [D-§4, D-§7]', () => {
    const simulation = subscribed();
    simulation.command('pause', { resumeAt: FEB_10 });
    expect(simulation.command('pause', { resumeAt: MARCH_5 }).decision).toEqual({ ok: true });
    expect([simulation.state.status, wakeAt(simulation.state)]).toEqual(['PAUSED', MARCH_5]);
    const upcoming = upcomingCharges(simulation.state, 5, simulation.now);
    expect(upcoming.map((charge) => [charge.at, charge.cycleNumber])).toEqual([
      [MARCH_5, 2],
      [at('2026-04-05T00:00:00Z'), 3],
    ]);
    simulation.runTo('2026-12-31T00:00:00Z');
    expect(sent(simulation)).toEqual([
      ['2026-03-05T00:00:00.000Z', 2],
      ['2026-04-05T00:00:00.000Z', 3],
    ]);
    expect(simulation.events.slice(0, 2)).toEqual(['subscription.paused', 'subscription.active']);
    expectNothingFurther(simulation);
  });

  test('keeps its date when a further pause gives none, which is refused; without a date nothing is upcoming [D-§4]', () => {
    const simulation = subscribed();
    simulation.command('pause', {});
    expect(upcomingCharges(simulation.state, 5, simulation.now)).toEqual([]);
    simulation.command('pause', { resumeAt: MARCH_5 });
    expect(simulation.command('pause', {}).decision).toEqual({
      ok: false,
      code: 'operation_not_allowed',
      message: 'A subscription that is PAUSED cannot be paused.',
    });
    expect(wakeAt(simulation.state)).toBe(MARCH_5);
  });

  test('has one upcoming charge without a date while a hard decline of the owed cycle waits for another card [D-30, D-§4]', () => {
    const simulation = subscribed();
    simulation.replies.push(declined('lost_card'));
    simulation.runTo(FEB_10);
    simulation.command('pause', { resumeAt: MARCH_5 });
    const [first] = upcomingCharges(simulation.state, 5, simulation.now);
    expect([first?.at, first?.cycleNumber]).toEqual([null, 2]);
  });

  test('ends when the subscription is cancelled [D-§4]', () => {
    const simulation = subscribed();
    simulation.command('pause', { resumeAt: MARCH_5 });
    simulation.command('cancel', { reason: 'cancelled' });
    expect(simulation.state.status).toBe('ENDED');
    expectNothingFurther(simulation);
  });
});
