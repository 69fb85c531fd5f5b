import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nextPaymentAt } from '../../domain/subscription/state.ts';
import type { OpenAttempt, OwedCycle } from '../../domain/subscription/state.ts';
import { DAY, expectNothingFurther, HOUR, Simulation } from '../support/simulation.ts';
import type { Exchange, Reply } from '../support/simulation.ts';

const TOKEN = { paymentToken: 'ptk', checkoutSessionId: 'cs' };
const SOFT: Reply = { kind: 'declined', code: 'card_declined' };
const NEVER: Reply = { ...SOFT, gatewayCode: 'generic_decline', retry: 'never' };
const AUTOMATIC = ['scheduled', 'automatic_retry', 'new_method'];

function subscribed(): Simulation {
  const simulation = new Simulation('2026-01-31T00:00:00Z', { cycleCount: 3 });
  simulation.pay();
  return simulation;
}

describe('a declined charge', () => {
  test('is not retried when the gateway forbids another try, and keeps its decline code [D-30]', () => {
    const simulation = subscribed();
    simulation.replies.push(NEVER);
    simulation.runTo('2026-03-01T00:00:00Z');
    expect(simulation.sentOn).toEqual(['2026-01-31', '2026-02-28']);
    expect(simulation.state).toMatchObject({
      status: 'UNPAID',
      owed: { retriesStopped: true, nextRetryAt: null, lastDeclineCode: 'card_declined' },
    });
    expect(simulation.state.log.at(-1)?.what).toBe(
      'cycle 2 declined (card_declined, at the gateway generic_decline)',
    );
    expectNothingFurther(simulation);
  });

  test('is repeated with another payment method although the gateway forbade another try [D-30, D-33]', () => {
    const simulation = subscribed();
    simulation.replies.push(NEVER);
    simulation.runTo('2026-03-01T00:00:00Z');
    simulation.command('replacePaymentMethod', TOKEN);
    expect(simulation.sentOn).toEqual(['2026-01-31', '2026-02-28', '2026-03-01']);
    expect(simulation.state).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  });

  test('is retried when the gateway does not forbid another try [D-30]', () => {
    const simulation = subscribed();
    simulation.replies.push({ ...SOFT, gatewayCode: 'card_declined' });
    simulation.runTo('2026-03-01T00:00:00Z');
    expect(simulation.sends.map(({ trigger }) => trigger)).toEqual([
      'checkout',
      'scheduled',
      'automatic_retry',
    ]);
    expect(simulation.state.log.map(({ what }) => what)).toContain(
      'cycle 2 declined (card_declined)',
    );
  });
});

/** Records automatic attempts that begin while the gateway forbids them. */
class WithAdvice extends Simulation {
  isForbidden = false;
  readonly forbidden: string[] = [];
  stops = 0;

  protected override askGateway(owed: OwedCycle, attempt: OpenAttempt): Exchange {
    if (this.isForbidden && AUTOMATIC.includes(attempt.trigger)) {
      this.forbidden.push(`${attempt.trigger} of cycle ${owed.cycleNumber}`);
    }
    const answer = super.askGateway(owed, attempt);
    if (answer.kind === 'succeeded') this.isForbidden = false;
    else if (answer.kind === 'declined' && answer.retry === 'never') {
      this.isForbidden = true;
      this.stops += 1;
    }
    return answer;
  }
}

type Move =
  | { do: 'edit' | 'wait'; inMs: number }
  | { do: 'replacePaymentMethod' | 'manualRetry' | 'next' | 'cancelAtPeriodEnd' | 'resume' };

const inMs = fc.integer({ min: 1, max: 40 * DAY });
const moves: fc.Arbitrary<Move> = fc.oneof(
  inMs.map((ms) => ({ do: 'edit' as const, inMs: ms })),
  inMs.map((ms) => ({ do: 'wait' as const, inMs: ms })),
  fc.constantFrom<Move>(
    { do: 'next' },
    { do: 'next' },
    { do: 'manualRetry' },
    { do: 'replacePaymentMethod' },
    { do: 'cancelAtPeriodEnd' },
    { do: 'resume' },
  ),
);

describe('any sequence of edits, retries, new cards and declines', () => {
  test('has no automatic attempt after a decline with the advice never, until a charge succeeds or the payment method changes [D-30]', () => {
    let stops = 0;
    fc.assert(
      fc.property(
        fc.array(moves, { minLength: 10, maxLength: 60, size: 'max' }),
        fc.array(fc.constantFrom<Reply>(SOFT, NEVER, { kind: 'succeeded' }), {
          minLength: 60,
          maxLength: 60,
        }),
        (sequence, answers) => {
          const simulation = new WithAdvice('2026-01-31T00:00:00Z', {
            interval: 'WEEK',
            cycleCount: 40,
          });
          simulation.pay();
          simulation.replies.push(...answers);
          for (const move of sequence) {
            if (move.do === 'wait') simulation.runTo(simulation.now + move.inMs);
            else if (move.do === 'edit') {
              simulation.command('edit', { newNextPaymentAt: simulation.now + move.inMs });
            } else if (move.do === 'next') {
              const nextAt = nextPaymentAt(simulation.state) ?? simulation.now + HOUR;
              simulation.runTo(Math.max(simulation.now, nextAt));
            } else if (move.do === 'cancelAtPeriodEnd') {
              simulation.command('cancel', { reason: 'cancelled', atPeriodEnd: true });
            } else if (move.do === 'replacePaymentMethod') {
              simulation.isForbidden = false;
              simulation.command(move.do, TOKEN);
            } else simulation.command(move.do, {});
          }
          stops += simulation.stops;
          expect(simulation.forbidden).toEqual([]);
        },
      ),
      { numRuns: 500 },
    );
    expect(stops).toBeGreaterThan(500);
  });
});
