import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { needsVerification } from '../../domain/subscription/actions.ts';
import { nextPaymentAt } from '../../domain/subscription/state.ts';
import { DAY, HOUR, Simulation } from '../support/simulation.ts';
import type { Reply, Send } from '../support/simulation.ts';

const declined = (): Reply => ({ kind: 'declined', code: 'card_declined' });
const TOKEN = { paymentToken: 'ptk', checkoutSessionId: 'cs' };
const MINUTE = 60_000;

/** The triggers of automatic attempts. The merchant or the payer orders every other attempt. */
const AUTOMATIC = ['scheduled', 'automatic_retry', 'new_method'];

/**
 * Creates a monthly subscription on 1 January whose second cycle is declined `attempts` times: first on 1
 * February at 00:00, then every minute, because each edit sets the next date one minute later.
 */
function declinedTimes(attempts: number): Simulation {
  const simulation = new Simulation('2026-01-01T00:00:00Z');
  simulation.pay();
  simulation.replies.push(...Array.from({ length: attempts }, declined));
  simulation.runTo('2026-02-01T00:00:00Z');
  for (let n = 1; n < attempts; n += 1) {
    const { decision } = simulation.command('edit', { newNextPaymentAt: simulation.now + MINUTE });
    expect(decision).toEqual({ ok: true });
    simulation.runTo(simulation.now + MINUTE);
  }
  return simulation;
}

const sentForCycle = (simulation: Simulation, cycleNumber: number): string[] =>
  simulation.sends
    .filter((send) => send.cycleNumber === cycleNumber)
    .map(({ at, trigger }) => `${new Date(at).toISOString().slice(0, 16)} ${trigger}`);

/** The largest number of automatic attempts on one cycle within any 30 days. */
function mostIn30Days(sends: readonly Send[]): number {
  const automatic = sends.filter(({ trigger }) => AUTOMATIC.includes(trigger));
  return Math.max(
    0,
    ...automatic.map(
      (first) =>
        automatic.filter(
          ({ at, cycleNumber }) =>
            cycleNumber === first.cycleNumber && at >= first.at && at < first.at + 30 * DAY,
        ).length,
    ),
  );
}

describe('a cycle with 15 automatic attempts in 30 days', () => {
  test('refuses an edited date that is before the next allowed attempt, naming the instant of that attempt [D-15, D-30]', () => {
    const simulation = declinedTimes(15);
    const earliestAt = Date.parse('2026-03-03T00:00:00Z');
    const before = structuredClone(simulation.state);
    expect(
      simulation.command('edit', { newNextPaymentAt: earliestAt - 1, newAmountMinor: 500 }),
    ).toEqual({
      decision: {
        ok: false,
        code: 'bad_request',
        message:
          'newNextPaymentDate must not be before 2026-03-03T00:00:00.000Z: a billing cycle gets at most 15 automatic attempts in 30 days.',
      },
      result: null,
    });
    expect(simulation.state).toEqual(before);
    expect(simulation.command('edit', { newNextPaymentAt: earliestAt }).decision.ok).toBe(true);
    simulation.runTo('2026-03-03T00:00:00Z');
    expect(sentForCycle(simulation, 2)).toHaveLength(16);
    expect(sentForCycle(simulation, 2).at(-1)).toBe('2026-03-03T00:00 automatic_retry');
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
    simulation.runTo('2026-04-02T23:59:59Z');
    expect(sentForCycle(simulation, 3)).toEqual([]);
  });

  test('refuses an unpause whose date is before the next allowed attempt, naming the instant of that attempt [D-§4, D-30]', () => {
    const simulation = declinedTimes(15);
    simulation.command('pause', {});
    const earliestAt = Date.parse('2026-03-03T00:00:00Z');
    expect(simulation.command('unpause', { newNextPaymentAt: earliestAt - 1 }).decision).toEqual({
      ok: false,
      code: 'bad_request',
      message:
        'newNextPaymentDate must not be before 2026-03-03T00:00:00.000Z: a billing cycle gets at most 15 automatic attempts in 30 days.',
    });
    expect(simulation.state.status).toBe('PAUSED');
    expect(simulation.command('unpause', { newNextPaymentAt: earliestAt }).decision.ok).toBe(true);
    const edit = simulation.command('edit', { newNextPaymentAt: earliestAt - 1 });
    expect(edit.decision).toMatchObject({ ok: false, code: 'bad_request' });
    simulation.runTo('2026-03-03T00:00:00Z');
    expect(sentForCycle(simulation, 2).slice(15)).toEqual(['2026-03-03T00:00 scheduled']);
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  });

  test('keeps a new payment method and charges it when the next attempt is allowed [D-30, D-33]', () => {
    const simulation = declinedTimes(15);
    const command = { kind: 'replacePaymentMethod', commandId: 'cmd_x', ...TOKEN } as const;
    const time = { now: simulation.now, realNow: simulation.now };
    // No charge follows at once, so the gateway has to verify the card.
    expect(needsVerification(simulation.state, command, time)).toBe(true);
    const { result } = simulation.command('replacePaymentMethod', TOKEN);
    expect(result).toEqual({ kind: 'checkout', outcome: 'saved', errorCode: null });
    expect(simulation.state).toMatchObject({ status: 'UNPAID', openAttempt: null });
    expect(nextPaymentAt(simulation.state)).toBe(Date.parse('2026-03-03T00:00:00Z'));
    expect(simulation.state.log.at(-1)).toEqual({
      at: Date.parse('2026-02-01T00:14:00Z'),
      what: 'payment method replaced',
      why: 'the payer gave another one; 15 automatic attempts in 30 days are made, so the next is at 2026-03-03T00:00:00.000Z',
      actor: 'payer',
    });
    simulation.runTo('2026-03-03T00:00:00Z');
    expect(sentForCycle(simulation, 2).slice(15)).toEqual(['2026-03-03T00:00 automatic_retry']);
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  });

  test('starts the retry plan anew when the new payment method is declined too [D-30]', () => {
    const simulation = declinedTimes(15);
    simulation.command('replacePaymentMethod', TOKEN);
    simulation.replies.push(declined());
    simulation.runTo('2026-03-03T04:00:00Z');
    expect(sentForCycle(simulation, 2).slice(15)).toEqual([
      '2026-03-03T00:00 automatic_retry',
      '2026-03-03T04:00 automatic_retry',
    ]);
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  });

  test('still allows a manual retry [D-31]', () => {
    const simulation = declinedTimes(15);
    const { result } = simulation.command('manualRetry', {});
    expect(result).toMatchObject({ kind: 'manualRetry', success: true, status: 'ACTIVE' });
    expect(sentForCycle(simulation, 2).slice(15)).toEqual(['2026-02-01T00:14 manual_retry']);
  });

  test('waits until the next attempt is allowed when its stored retry date is earlier [D-30]', () => {
    const simulation = declinedTimes(15);
    const { owed } = simulation.state;
    simulation.state = {
      ...simulation.state,
      owed: owed && { ...owed, nextRetryAt: simulation.now + MINUTE },
    };
    simulation.runTo('2026-03-03T00:00:00Z');
    expect(sentForCycle(simulation, 2).slice(15)).toEqual(['2026-03-03T00:00 automatic_retry']);
  });
});

describe('any sequence of edits, pauses, new cards and retries', () => {
  type Move =
    | { do: 'edit' | 'unpause'; inMs: number }
    | { do: 'pause' | 'replacePaymentMethod' | 'manualRetry' | 'next' }
    | { do: 'wait'; ms: number };
  const inMs = fc.oneof(
    fc.integer({ min: 1, max: 10 * MINUTE }),
    fc.integer({ min: 1, max: 40 * DAY }),
  );
  const moves: fc.Arbitrary<Move> = fc.oneof(
    { weight: 6, arbitrary: inMs.map((ms) => ({ do: 'edit' as const, inMs: ms })) },
    { weight: 4, arbitrary: inMs.map((ms) => ({ do: 'unpause' as const, inMs: ms })) },
    { weight: 3, arbitrary: fc.constant({ do: 'pause' as const }) },
    { weight: 4, arbitrary: fc.constant({ do: 'replacePaymentMethod' as const }) },
    { weight: 1, arbitrary: fc.constant({ do: 'manualRetry' as const }) },
    { weight: 12, arbitrary: fc.constant({ do: 'next' as const }) },
    { weight: 2, arbitrary: inMs.map((ms) => ({ do: 'wait' as const, ms })) },
  );
  const replies: fc.Arbitrary<Reply> = fc.oneof(
    { weight: 20, arbitrary: fc.constant(declined()) },
    { weight: 1, arbitrary: fc.constant<Reply>({ kind: 'declined', code: 'stolen_card' }) },
    { weight: 2, arbitrary: fc.constant<Reply>({ kind: 'unknown' }) },
  );

  test('makes at most 15 automatic attempts on a cycle in 30 days [D-30]', () => {
    let atTheCap = 0;
    fc.assert(
      fc.property(
        fc.array(moves, { minLength: 60, maxLength: 160, size: 'max' }),
        fc.array(replies, { minLength: 250, maxLength: 250 }),
        (sequence, answers) => {
          const simulation = new Simulation('2026-01-31T00:00:00Z', {
            interval: 'DAY',
            intervalCount: 1,
            cycleCount: 400,
          });
          simulation.pay();
          simulation.replies.push(...answers);
          for (const move of sequence) {
            if (move.do === 'edit' || move.do === 'unpause') {
              simulation.command(move.do, { newNextPaymentAt: simulation.now + move.inMs });
            } else if (move.do === 'wait') simulation.runTo(simulation.now + move.ms);
            else if (move.do === 'next') {
              const nextAt = nextPaymentAt(simulation.state) ?? simulation.now + HOUR;
              simulation.runTo(Math.max(simulation.now, nextAt));
            } else if (move.do === 'replacePaymentMethod') simulation.command(move.do, TOKEN);
            else simulation.command(move.do, {});
          }
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
});
