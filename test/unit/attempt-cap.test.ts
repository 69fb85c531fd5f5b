import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { needsVerification } from '../../domain/subscription/actions.ts';
import { nextPaymentAt } from '../../domain/subscription/state.ts';
import {
  at,
  DAY,
  declined,
  declines,
  HOUR,
  refused,
  subscribed,
  TOKEN,
  UNKNOWN,
} from '../support/simulation.ts';
import type { Reply, Send, Simulation } from '../support/simulation.ts';
import { weighted } from '../support/weighted.ts';

const MINUTE = 60_000;

/** The triggers of automatic attempts. The merchant or the payer orders every other attempt. */
const AUTOMATIC = ['scheduled', 'automatic_retry', 'new_method'];

/** The decision on an edit or an unpause whose date is before the next allowed attempt. */
const TOO_EARLY = refused(
  'newNextPaymentDate must not be before 2026-03-03T00:00:00.000Z: a billing cycle gets at most 15 automatic attempts in 30 days.',
  'bad_request',
);
const JUST_BEFORE = '2026-03-02T23:59:59.999Z';

/**
 * A monthly subscription from 1 January whose second cycle is declined 15 times: first on 1 February at 00:00, then
 * every minute, because each edit sets the next date one minute later.
 */
function declined15Times(last = 'card_declined'): Simulation {
  const simulation = subscribed('2026-01-01').gives(...declines(14), declined(last));
  simulation.runTo('2026-02-01');
  for (let n = 1; n < 15; n += 1) {
    const nextAt = simulation.now + MINUTE;
    expect(simulation.command('edit', { newNextPaymentAt: nextAt }).decision.ok).toBe(true);
    simulation.runTo(nextAt);
  }
  simulation.sends.length = 0;
  return simulation;
}

/** The largest number of automatic attempts on one cycle within any 30 days. */
function mostIn30Days(sends: readonly Send[]): number {
  const automatic = sends.filter(({ trigger }) => AUTOMATIC.includes(trigger));
  const within30Days = (first: Send) => (send: Send) =>
    send.cycleNumber === first.cycleNumber && send.at >= first.at && send.at < first.at + 30 * DAY;
  return Math.max(0, ...automatic.map((first) => automatic.filter(within30Days(first)).length));
}

describe('a cycle with 15 automatic attempts in 30 days', () => {
  const paid = { status: 'ACTIVE', cyclesCharged: 2 };

  test('refuses an edited date that is before the next allowed attempt, naming the instant of that attempt [D-15, D-30]', () => {
    const simulation = declined15Times();
    const before = structuredClone(simulation.state);
    const edit = simulation.edit(JUST_BEFORE, { newAmountMinor: 500 });
    expect(edit).toEqual({ decision: TOO_EARLY, result: null });
    expect(simulation.state).toEqual(before);
    expect(simulation.edit('2026-03-03').decision.ok).toBe(true);
    simulation.runTo('2026-04-02T23:59:59Z');
    expect(simulation).toMatchObject({ sent: '2026-03-03 2 automatic_retry', state: paid });
  });

  test('refuses an unpause whose date is before the next allowed attempt, naming the instant of that attempt [D-§4, D-30]', () => {
    const simulation = declined15Times();
    simulation.pause();
    expect(simulation.unpause(JUST_BEFORE).decision).toEqual(TOO_EARLY);
    expect(simulation.state.status).toBe('PAUSED');
    expect(simulation.unpause('2026-03-03').decision.ok).toBe(true);
    expect(simulation.edit(JUST_BEFORE).decision).toEqual(TOO_EARLY);
    simulation.runTo('2026-03-03');
    expect(simulation).toMatchObject({ sent: '2026-03-03 2', state: paid });
  });

  test('accepts any date of an unpause after a hard decline, because none is charged [D-§4, D-30]', () => {
    const simulation = declined15Times('lost_card');
    simulation.pause();
    expect(simulation.unpause('2026-02-10').decision).toEqual({ ok: true });
    simulation.runTo('2026-04-10');
    expect(simulation).toMatchObject({ sent: '', state: { status: 'UNPAID' } });
  });

  test('keeps a new payment method and charges it when the next attempt is allowed [D-30, D-33]', () => {
    const simulation = declined15Times();
    const command = { kind: 'replacePaymentMethod', commandId: 'cmd_x', ...TOKEN } as const;
    const time = { now: simulation.now, realNow: simulation.now };
    // No charge follows at once, so the gateway has to verify the card.
    expect(needsVerification(simulation.state, command, time)).toBe(true);
    const { result } = simulation.newCard();
    expect(result).toEqual({ kind: 'checkout', outcome: 'saved', errorCode: null });
    const waiting = { status: 'UNPAID', openAttempt: null };
    expect(simulation).toMatchObject({ state: waiting, nextAt: '2026-03-03' });
    expect(simulation.log.at(-1)).toEqual({
      at: at('2026-02-01T00:14Z'),
      what: 'payment method replaced',
      why: 'the payer gave another one; 15 automatic attempts in 30 days are made, so the next is at 2026-03-03T00:00:00.000Z',
      actor: 'payer',
    });
    simulation.runTo('2026-03-03');
    expect(simulation).toMatchObject({ sent: '2026-03-03 2 automatic_retry', state: paid });
  });

  test('starts the retry plan anew when the new payment method is declined too [D-30]', () => {
    const simulation = declined15Times();
    simulation.newCard();
    simulation.gives(declined()).runTo('2026-03-03T04:00Z');
    const sent = '2026-03-03 2 automatic_retry, 2026-03-03T04:00 2 automatic_retry';
    expect(simulation).toMatchObject({ sent, state: paid });
  });

  test('still allows a manual retry [D-31]', () => {
    const simulation = declined15Times();
    expect(simulation.retry().result).toMatchObject({ success: true, status: 'ACTIVE' });
    expect(simulation.sent).toBe('2026-02-01T00:14 2 manual_retry');
  });

  test('waits until the next attempt is allowed when its stored retry date is earlier [D-30]', () => {
    const simulation = declined15Times();
    const { owed } = simulation.state;
    const nextRetryAt = simulation.now + MINUTE;
    simulation.state = { ...simulation.state, owed: owed && { ...owed, nextRetryAt } };
    simulation.runTo('2026-03-03');
    expect(simulation.sent).toBe('2026-03-03 2 automatic_retry');
  });
});

test('any sequence of edits, pauses, new cards and retries makes at most 15 automatic attempts on a cycle in 30 days [D-30]', () => {
  type Move = (simulation: Simulation) => unknown;
  const ms = fc.oneof(
    fc.integer({ min: 1, max: 10 * MINUTE }),
    fc.integer({ min: 1, max: 40 * DAY }),
  );
  const dated = (kind: 'edit' | 'unpause') =>
    ms.map(
      (inMs): Move =>
        (one) =>
          one.command(kind, { newNextPaymentAt: one.now + inMs }),
    );
  const next: Move = (one) =>
    one.runTo(Math.max(one.now, nextPaymentAt(one.state) ?? one.now + HOUR));
  const moves = weighted<Move>(
    [6, dated('edit')],
    [4, dated('unpause')],
    [3, fc.constant<Move>((one) => one.pause())],
    [4, fc.constant<Move>((one) => one.newCard())],
    [1, fc.constant<Move>((one) => one.retry())],
    [12, fc.constant(next)],
    [
      2,
      ms.map(
        (inMs): Move =>
          (one) =>
            one.runTo(one.now + inMs),
      ),
    ],
  );
  const replies = weighted<Reply>(
    [20, fc.constant<Reply>(declined())],
    [1, fc.constant<Reply>(declined('stolen_card'))],
    [2, fc.constant<Reply>(UNKNOWN)],
  );
  let atTheCap = 0;
  fc.assert(
    fc.property(
      fc.array(moves, { minLength: 60, maxLength: 160, size: 'max' }),
      fc.array(replies, { minLength: 250, maxLength: 250 }),
      (sequence, answers) => {
        const terms = { interval: 'DAY', intervalCount: 1, cycleCount: 400 } as const;
        const simulation = subscribed('2026-01-31', terms).gives(...answers);
        for (const move of sequence) move(simulation);
        const most = mostIn30Days(simulation.sends);
        if (most === 15) atTheCap += 1;
        expect(most).toBeLessThanOrEqual(15);
      },
    ),
    { numRuns: 1_000 },
  );
  // If too few sequences reach the cap, the property proves nothing.
  expect(atTheCap).toBeGreaterThan(100);
});
