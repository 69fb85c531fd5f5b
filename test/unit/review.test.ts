import { describe, expect, test } from 'vitest';
import { isAskedLongEnough, isPendingTooLong, lookupDelayMs } from '../../domain/lookup-delays.ts';
import { isLastLateLook, lateLookDelayMs } from '../../domain/review.ts';
import { applyLateCharge, settleNow } from '../../domain/subscription/apply-attempt.ts';
import { decide, wakeAt } from '../../domain/subscription/decide.ts';
import { describe as inWords } from '../../domain/subscription/describe.ts';
import { decisionOf } from '../../tools/scripts/review/decision.ts';
import { DAY, HOUR, Simulation } from '../support/simulation.ts';
import { attributesOf } from '../../workflows/subscription/messages.ts';

const REASON = 'the gateway refused the request: 401 key_unknown';
const REVIEW = { kind: 'review', reason: REASON } as const;

/** Creates a subscription whose cycle 2 is declined on 10 February and whose retry 4 h later is in manual review. */
function inReview(): Simulation {
  const simulation = new Simulation('2027-01-10T00:00:00Z');
  simulation.pay();
  simulation.replies.push({ kind: 'declined', code: 'card_declined' }, REVIEW);
  simulation.runTo('2027-02-10T04:00:00Z');
  return simulation;
}

const lastOutcome = (simulation: Simulation) =>
  attributesOf(simulation.state).find(({ key }) => key.name === 'LastOutcome')?.value;

describe('the look-up schedule', () => {
  const KEYS = Array.from({ length: 10_000 }, (_, n) => `sub_${n}`);
  const delaysOf = (key: string, count: number) =>
    Array.from({ length: count }, (_, n) => lookupDelayMs(n, key));

  test('has 313 delays of at most 290 s, 24 to 25 h in all, before an unanswered look-up can lead to review', () => {
    const days = KEYS.slice(0, 100).map((key) => delaysOf(key, 313));
    const longest = Math.max(...days.flat());
    const sums = days.map((delays) => delays.reduce((sum, delay) => sum + delay, 0) / HOUR);
    expect(longest).toBe(290_000);
    expect(days[0]?.slice(0, 3)).toEqual([10_000, 30_000, 60_000]);
    expect([Math.min(...sums) >= 24, Math.max(...sums) <= 25]).toEqual([true, true]);
    expect([0, 312, 313, 314].map(isAskedLongEnough)).toEqual([false, false, true, true]);
  });

  test('asks about 10,000 outcomes that became unknown at once at most 65 times in any second of the next hour, 35 times on average [D-40]', () => {
    const counts = Array.from({ length: 3_600 }, () => 0);
    for (const key of KEYS) {
      let at = -100_000;
      for (const delay of delaysOf(key, 17)) {
        at += delay;
        const second = Math.floor(at / 1_000);
        if (second > 0 && second < counts.length) counts[second]! += 1;
      }
    }
    const sum = counts.reduce((total, count) => total + count, 0);
    expect(Math.round(sum / counts.length)).toBe(35);
    expect(Math.max(...counts)).toBeLessThanOrEqual(65);
  });

  test('has daily delays for 30 days after the first day while the gateway has the charge and does not decide it', () => {
    const days = [313, 314, 342].map((n) => lookupDelayMs(n, 'sub_1') / HOUR);
    expect(days).toEqual([24, 24, 24]);
    expect([313, 342, 343, 344].map(isPendingTooLong)).toEqual([false, false, true, true]);
  });

  test('looks for a late charge after 10 min, 1 h, 6 h, 1 day, 3 days and 7 days, then daily until the gateway answers that there is none', () => {
    let at = 0;
    const looks = Array.from({ length: 8 }, (_, n) => (at += lateLookDelayMs(n)) / HOUR);
    expect(looks).toEqual([1 / 6, 1, 6, 24, 72, 168, 192, 216]);
    expect([0, 5, 6, 7].map(isLastLateLook)).toEqual([false, false, true, true]);
  });
});

describe('a payment in review', () => {
  test('is shown with its reason in timeline and details, and in the search attribute LastOutcome', () => {
    const simulation = inReview();
    expect(simulation.state.log.at(-1)).toEqual({
      at: Date.parse('2027-02-10T04:00:00Z'),
      what: 'a payment needs a person',
      why: REASON,
      actor: 'gateway',
    });
    expect(inWords(simulation.state, simulation.now)).toContain('a person has to settle a payment');
    expect(inWords(simulation.state, simulation.now)).toContain(REASON);
    expect(lastOutcome(simulation)).toBe('review');
  });

  test('is looked up once a day and settled at once after a decision', () => {
    const simulation = inReview();
    const nextDay = Date.parse('2027-02-11T04:00:00Z');
    expect(wakeAt(simulation.state)).toBe(nextDay);
    simulation.replies.push(REVIEW, { kind: 'unknown' });
    simulation.runTo('2027-02-13T00:00:00Z');
    expect(simulation.state.openAttempt).toMatchObject({ lookups: 3, lookupAt: nextDay + 2 * DAY });
    const decided = settleNow(simulation.state, simulation.now);
    expect(decide(decided, simulation.now, simulation.now)).toEqual({ do: 'settleAttempt' });
    expect(simulation.state.log.filter(({ what }) => what.includes('person'))).toHaveLength(1);
  });

  test('allows edit, pause and cancel, and refuses a second attempt [D-31]', () => {
    const simulation = inReview();
    expect(simulation.command('edit', { newAmountMinor: 2_500 }).decision).toEqual({ ok: true });
    expect(simulation.command('manualRetry', {}).decision).toMatchObject({
      code: 'payment_outcome_pending',
    });
    expect(simulation.command('pause', {}).decision).toEqual({ ok: true });
    expect(simulation.command('cancel', { reason: 'cancelled' }).decision).toEqual({ ok: true });
    expect(simulation.state).toMatchObject({
      status: 'ENDED',
      openAttempt: { reviewReason: REASON },
    });
    expect(decide(simulation.state, simulation.now, simulation.now)).toMatchObject({
      do: 'wait',
      time: 'real',
    });
    // A payment that is settled as paid after the subscription ended still pays the cycle.
    simulation.runTo(simulation.now + 2 * DAY);
    expect(simulation.state).toMatchObject({ cyclesCharged: 2, openAttempt: null });
    expect(simulation.sends).toHaveLength(3);
  });

  test('is retried by the plan after an operator settles it as not charged, and the log entry has the actor operator [D-30]', () => {
    const simulation = inReview();
    simulation.replies.push({ kind: 'declined', code: 'processing_error', byPerson: true });
    simulation.runTo('2027-02-10T05:00:00Z');
    simulation.state = settleNow(simulation.state, simulation.now);
    simulation.runTo('2027-02-10T05:00:00Z');
    expect(simulation.state).toMatchObject({
      status: 'UNPAID',
      openAttempt: null,
      owed: {
        lastDeclineCode: 'processing_error',
        retriesUsed: 2,
        nextRetryAt: Date.parse('2027-02-10T12:00:00Z'),
      },
    });
    expect(simulation.state.log.at(-1)).toMatchObject({
      what: 'cycle 2 declined (processing_error)',
      why: 'the retry plan said so (attempt 2); a person settled it',
      actor: 'operator',
    });
    expect(lastOutcome(simulation)).toBe('processing_error');
  });

  test('gets a log entry for a late charge, which pays no cycle', () => {
    const simulation = inReview();
    const charge = { amountMinor: 1_999, currency: 'USD', gatewayKey: 'charge:in_2:2' };
    const { state, events } = applyLateCharge(simulation.state, charge, simulation.now);
    expect(state).toEqual({
      ...simulation.state,
      version: simulation.state.version + 1,
      log: [...simulation.state.log, state.log.at(-1)],
    });
    expect(events).toEqual([]);
    expect(state.log.at(-1)).toEqual({
      at: simulation.now,
      what: 'a late charge came to light, 19.99 USD',
      why: 'charge:in_2:2 had been settled as not paid; it is given back',
      actor: 'gateway',
    });
  });
});

describe('the decision of a review', () => {
  const by = { by: 'Ada', note: 'bank statement' };
  const OF_ATTEMPT = '--paid <gatewayChargeId>, --declined <code> or --not-charged';

  test.each([
    ['no outcome', 'att_1', {}, `Give exactly one of ${OF_ATTEMPT}.`],
    [
      'two outcomes',
      'att_1',
      { paid: 'ch_1', notCharged: true },
      `Give exactly one of ${OF_ATTEMPT}.`,
    ],
    [
      'a refund outcome for an attempt',
      'att_1',
      { refunded: 're_1' },
      `att_1 allows only ${OF_ATTEMPT}.`,
    ],
    [
      'a charge outcome for a refund',
      'rf_1',
      { paid: 'ch_1' },
      'rf_1 allows only --refunded <gatewayRefundId> or --not-refunded.',
    ],
    ['an empty id', 'att_1', { paid: ' ' }, '--by, --note and the id of a charge or refund must'],
    [
      'an unknown decline code',
      'att_1',
      { declined: 'toString' },
      '--declined takes one of: card_declined',
    ],
  ])('is refused when it gives %s', (_, id, options, message) => {
    expect(() => decisionOf(id, { ...options, ...by })).toThrow(message);
  });

  test('contains the outcome, the operator and the note', () => {
    expect(decisionOf('att_1', { declined: 'card_declined', ...by })).toEqual({
      outcome: 'declined',
      gatewayId: null,
      code: 'card_declined',
      ...by,
    });
    expect(decisionOf('rf_1', { refunded: 're_1', ...by })).toMatchObject({
      outcome: 'refunded',
      gatewayId: 're_1',
    });
  });
});
