import { describe, expect, test } from 'vitest';
import { isAskedLongEnough, isPendingTooLong, lookupDelayMs } from '../../domain/delays.ts';
import { isLastLateLook, lateLookDelayMs } from '../../domain/review.ts';
import { settleNow } from '../../domain/subscription/apply-attempt.ts';
import { textOf } from '../../domain/subscription/entries.ts';
import { applyLateCharge } from '../../domain/subscription/notes.ts';
import { decide, wakeAt } from '../../domain/subscription/decide.ts';
import { decisionOf } from '../../cli/review/decision.ts';
import { at, DAY, declined, HOUR, iso, subscribed, UNKNOWN } from '../support/simulation.ts';
import type { Simulation } from '../support/simulation.ts';
import { attributesOf } from '../../workflows/subscription/messages.ts';

const REASON = 'the gateway refused the request: 401 key_unknown';
const REVIEW = { kind: 'review', reason: REASON } as const;

/** A subscription whose cycle 2 is declined on 10 February and whose retry 4 h later is in manual review. */
function inReview(): Simulation {
  const simulation = subscribed('2027-01-10').gives(declined(), REVIEW);
  simulation.runTo('2027-02-10T04:00Z');
  return simulation;
}

const lastOutcome = ({ state }: Simulation) =>
  attributesOf(state).find(({ key }) => key.name === 'LastOutcome')?.value;

describe('the look-up schedule', () => {
  const KEYS = Array.from({ length: 10_000 }, (_, n) => `sub_${n}`);
  const delaysOf = (key: string, count: number) =>
    Array.from({ length: count }, (_, n) => lookupDelayMs(n, key));

  test('has 313 delays of at most 290 s, 24 to 25 h in all, before an unanswered look-up can lead to review', () => {
    const days = KEYS.slice(0, 100).map((key) => delaysOf(key, 313));
    const sums = days.map((delays) => delays.reduce((sum, delay) => sum + delay, 0) / HOUR);
    expect(Math.max(...days.flat())).toBe(290_000);
    expect(days[0]?.slice(0, 3)).toEqual([10_000, 30_000, 60_000]);
    expect([Math.min(...sums) >= 24, Math.max(...sums) <= 25]).toEqual([true, true]);
    expect([0, 312, 313, 314].map(isAskedLongEnough)).toEqual([false, false, true, true]);
  });

  test('asks about 10,000 outcomes that became unknown at once at most 65 times in any second of the next hour, 35 times on average [D-40]', () => {
    const counts = Array.from({ length: 3_600 }, () => 0);
    for (const key of KEYS) {
      let askedAt = -100_000;
      for (const delay of delaysOf(key, 17)) {
        askedAt += delay;
        const second = Math.floor(askedAt / 1_000);
        if (second > 0 && second < counts.length) counts[second]! += 1;
      }
    }
    const sum = counts.reduce((total, count) => total + count, 0);
    expect(Math.round(sum / counts.length)).toBe(35);
    expect(Math.max(...counts)).toBeLessThanOrEqual(65);
  });

  test('has daily delays for 30 days after the first day while the gateway has the charge and does not decide it', () => {
    expect([313, 314, 342].map((n) => lookupDelayMs(n, 'sub_1') / HOUR)).toEqual([24, 24, 24]);
    expect([313, 342, 343, 344].map(isPendingTooLong)).toEqual([false, false, true, true]);
  });

  test('looks for a late charge after 10 min, 1 h, 6 h, 1 day, 3 days and 7 days, then daily until the gateway answers that there is none', () => {
    let hours = 0;
    const looks = Array.from({ length: 8 }, (_, n) => (hours += lateLookDelayMs(n) / HOUR));
    expect(looks.map((hour) => Number(hour.toFixed(6)))).toEqual([
      0.166667, 1, 6, 24, 72, 168, 192, 216,
    ]);
    expect([0, 5, 6, 7].map(isLastLateLook)).toEqual([false, false, true, true]);
  });
});

describe('a payment in review', () => {
  test('is shown with its reason in timeline and details, and in the search attribute LastOutcome', () => {
    const simulation = inReview();
    expect(simulation.log.at(-1)).toEqual({
      at: at('2027-02-10T04:00Z'),
      what: 'a payment needs a person',
      why: REASON,
      actor: 'gateway',
    });
    expect(simulation.words).toContain('a person has to settle a payment');
    expect(simulation.words).toContain(REASON);
    expect(lastOutcome(simulation)).toBe('review');
  });

  test('is looked up once a day and settled at once after a decision', () => {
    const simulation = inReview();
    expect(iso(wakeAt(simulation.state))).toBe('2027-02-11T04:00');
    simulation.gives(REVIEW, UNKNOWN).runTo('2027-02-13');
    const lookup = { lookups: 3, lookupAt: at('2027-02-13T04:00Z') };
    expect(simulation.state.openAttempt).toMatchObject(lookup);
    const decided = settleNow(simulation.state, simulation.now);
    expect(decide(decided, simulation.now, simulation.now)).toEqual({ do: 'settleAttempt' });
    expect(simulation.log.filter(({ what }) => what.includes('person'))).toHaveLength(1);
  });

  test('allows edit, pause and cancel, and refuses a second attempt [D-31]', () => {
    const simulation = inReview();
    expect(simulation.command('edit', { newAmountMinor: 2_500 }).decision).toEqual({ ok: true });
    expect(simulation.retry().decision).toMatchObject({ code: 'payment_outcome_pending' });
    expect(simulation.pause().decision).toEqual({ ok: true });
    expect(simulation.cancel().decision).toEqual({ ok: true });
    const openAttempt = { reviewReason: REASON };
    expect(simulation.state).toMatchObject({ status: 'ENDED', openAttempt });
    const { state, now } = simulation;
    expect(decide(state, now, now)).toMatchObject({ do: 'wait', time: 'real' });
    // A payment that is settled as paid after the subscription ended still pays the cycle.
    simulation.runTo(now + 2 * DAY);
    expect(simulation.state).toMatchObject({ cyclesCharged: 2, openAttempt: null });
    expect(simulation.sends).toHaveLength(3);
  });

  test('is retried by the plan after an operator settles it as not charged, and the log entry has the actor operator [D-30]', () => {
    const simulation = inReview();
    simulation.gives({ ...declined('processing_error'), byPerson: true });
    simulation.runTo('2027-02-10T05:00Z');
    simulation.state = settleNow(simulation.state, simulation.now);
    simulation.runTo('2027-02-10T05:00Z');
    const nextRetryAt = at('2027-02-10T12:00Z');
    const owed = { lastDeclineCode: 'processing_error', retriesUsed: 2, nextRetryAt };
    expect(simulation.state).toMatchObject({ status: 'UNPAID', openAttempt: null, owed });
    expect(simulation.log.at(-1)).toMatchObject({
      what: 'cycle 2 declined (processing_error)',
      why: 'the retry plan said so (attempt 2); a person settled it',
      actor: 'operator',
    });
    expect(lastOutcome(simulation)).toBe('processing_error');
  });

  test('gets a log entry for a late charge, which pays no cycle', () => {
    const { state: before, now } = inReview();
    const charge = { amountMinor: 1_999, currency: 'USD', gatewayKey: 'charge:in_2:2' };
    const { state, events } = applyLateCharge(before, charge, now);
    const entry = {
      at: now,
      what: 'a late charge came to light, 19.99 USD',
      why: 'charge:in_2:2 had been settled as not paid; it is given back',
      actor: 'gateway',
    };
    const version = before.version + 1;
    const { latest } = state;
    expect({ at: latest.at, ...textOf(latest, state.terms), actor: latest.actor }).toEqual(entry);
    expect(state).toEqual({ ...before, version, latest });
    expect(events).toEqual([]);
  });
});

describe('the decision of a review', () => {
  const by = { by: 'Ada', note: 'bank statement' };
  const OF_ATTEMPT = '--paid <gatewayChargeId>, --declined <code> or --not-charged';
  const OF_REFUND = '--refunded <gatewayRefundId> or --not-refunded';
  const TWO = { paid: 'ch_1', notCharged: true };

  test.each([
    ['no outcome', 'att_1', {}, `Give exactly one of ${OF_ATTEMPT}.`],
    ['two outcomes', 'att_1', TWO, `Give exactly one of ${OF_ATTEMPT}.`],
    ['another outcome', 'att_1', { refunded: 're_1' }, `att_1 allows only ${OF_ATTEMPT}.`],
    ['another outcome', 'rf_1', { paid: 'ch_1' }, `rf_1 allows only ${OF_REFUND}.`],
    ['an empty id', 'att_1', { paid: ' ' }, '--by, --note and the id of a charge or refund must'],
    [
      'an unknown code',
      'att_1',
      { declined: 'toString' },
      '--declined takes one of: card_declined',
    ],
  ])('is refused when it gives %s for %s', (_, id, options, message) => {
    expect(() => decisionOf(id, { ...options, ...by })).toThrow(message);
  });

  test('contains the outcome, the operator and the note', () => {
    const code = 'card_declined';
    const declinedBy = { outcome: 'declined', gatewayId: null, code, ...by };
    expect(decisionOf('att_1', { declined: code, ...by })).toEqual(declinedBy);
    const refunded = { outcome: 'refunded', gatewayId: 're_1' };
    expect(decisionOf('rf_1', { refunded: 're_1', ...by })).toMatchObject(refunded);
  });
});
