import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nextPaymentAt } from '../../domain/subscription/state.ts';
import type { OpenAttempt, OwedCycle } from '../../domain/subscription/state.ts';
import {
  DAY,
  declined,
  expectNothingFurther,
  HOUR,
  Simulation,
  subscribed,
} from '../support/simulation.ts';
import type { Exchange, Reply } from '../support/simulation.ts';

const NEVER: Reply = { ...declined(), gatewayCode: 'generic_decline', retry: 'never' };
const AUTOMATIC = ['scheduled', 'automatic_retry', 'new_method'];

/** The charge of 28 February is answered with `reply`. */
function until1March(reply: Reply): Simulation {
  const simulation = subscribed('2026-01-31').gives(reply);
  simulation.runTo('2026-03-01');
  return simulation;
}

describe('a declined charge', () => {
  test('is not retried when the gateway forbids another try, and keeps its decline code [D-30]', () => {
    const simulation = until1March(NEVER);
    const owed = { retriesStopped: true, nextRetryAt: null, lastDeclineCode: 'card_declined' };
    expect(simulation).toMatchObject({
      sent: '2026-01-31 1, 2026-02-28 2',
      state: { status: 'UNPAID', owed },
    });
    expect(simulation.log.at(-1)?.what).toBe(
      'cycle 2 declined (card_declined, at the gateway generic_decline)',
    );
    expectNothingFurther(simulation);
  });

  test('is repeated with another payment method although the gateway forbade another try [D-30, D-33]', () => {
    const simulation = until1March(NEVER);
    simulation.newCard();
    expect(simulation).toMatchObject({
      sent: '2026-01-31 1, 2026-02-28 2, 2026-03-01 2 new_method',
      state: { status: 'ACTIVE', cyclesCharged: 2 },
    });
  });

  test('is retried when the gateway does not forbid another try [D-30]', () => {
    const simulation = until1March({ ...declined(), gatewayCode: 'card_declined' });
    expect(simulation.sent).toBe('2026-01-31 1, 2026-02-28 2, 2026-02-28T04:00 2 automatic_retry');
    const entries = simulation.log.map(({ what }) => what);
    expect(entries).toContain('cycle 2 declined (card_declined)');
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

test('after a decline with the advice never, any sequence of commands has no automatic attempt until a charge succeeds or the payment method changes [D-30]', () => {
  type Move = (simulation: WithAdvice) => unknown;
  const ms = fc.integer({ min: 1, max: 40 * DAY });
  const next: Move = (one) =>
    one.runTo(Math.max(one.now, nextPaymentAt(one.state) ?? one.now + HOUR));
  const moves = fc.oneof(
    ms.map(
      (inMs): Move =>
        (one) =>
          one.command('edit', { newNextPaymentAt: one.now + inMs }),
    ),
    ms.map(
      (inMs): Move =>
        (one) =>
          one.runTo(one.now + inMs),
    ),
    fc.constantFrom<Move>(
      next,
      next,
      (one) => one.retry(),
      (one) => {
        one.isForbidden = false;
        one.newCard();
      },
      (one) => one.cancelAtPeriodEnd(),
      (one) => one.resume(),
    ),
  );
  const replies = fc.constantFrom<Reply>(declined(), NEVER, { kind: 'succeeded' });
  let stops = 0;
  fc.assert(
    fc.property(
      fc.array(moves, { minLength: 10, maxLength: 60, size: 'max' }),
      fc.array(replies, { minLength: 60, maxLength: 60 }),
      (sequence, answers) => {
        const simulation = new WithAdvice('2026-01-31', { interval: 'WEEK', cycleCount: 40 });
        simulation.pay();
        simulation.gives(...answers);
        for (const move of sequence) move(simulation);
        stops += simulation.stops;
        expect(simulation.forbidden).toEqual([]);
      },
    ),
    { numRuns: 500 },
  );
  expect(stops).toBeGreaterThan(500);
});
