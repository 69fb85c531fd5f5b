import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { causeText } from '../../domain/subscription/charge-cause.ts';
import { nextPaymentAt } from '../../domain/subscription/state.ts';
import type { OpenAttempt, OwedCycle } from '../../domain/subscription/state.ts';
import {
  at,
  DAY,
  declined,
  declines,
  expectNothingFurther,
  HOUR,
  Simulation,
  subscribed,
} from '../support/simulation.ts';
import type { Exchange, Reply } from '../support/simulation.ts';

const NEVER: Reply = {
  ...declined(),
  gatewayCode: 'generic_decline',
  advice: { kind: 'never' },
};
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

const declinedUntil = (instant: string): Reply => ({
  ...declined(),
  advice: { kind: 'not_before', at: at(instant) },
});

describe('a decline that names an instant', () => {
  test('moves the next retry to it, from which the plan counts on [D-30]', () => {
    const simulation = subscribed('2026-01-31').gives(declinedUntil('2026-03-01'), declined());
    simulation.runTo('2026-06-01');
    expect(simulation.sent).toBe(
      '2026-01-31 1, 2026-02-28 2, 2026-03-01 2 automatic_retry, ' +
        '2026-03-01T08:00 2 automatic_retry, 2026-03-31 3',
    );
    const [, , moved, planned] = simulation.opened;
    expect(moved?.cause && causeText(moved.cause, moved.trigger)).toBe(
      'the bank had advised no other try before 2026-03-01T00:00:00.000Z',
    );
    expect(planned?.cause && causeText(planned.cause, planned.trigger)).toBe(
      'retry 2 of 4 of the retry plan: 2026-03-01T00:00:00.000Z + 8 h = 2026-03-01T08:00:00.000Z',
    );
    expect(simulation.log.find(({ what }) => what.includes('declined'))?.why).toBe(
      'its date had come (attempt 1); the bank advised no other try before 2026-03-01T00:00:00.000Z',
    );
    expectNothingFurther(simulation);
  });

  test('changes nothing if the plan is later [D-30]', () => {
    const simulation = subscribed('2026-01-31').gives(declinedUntil('2026-02-28T01:00'));
    simulation.runTo('2026-06-01');
    expect(simulation.sent).toBe(
      '2026-01-31 1, 2026-02-28 2, 2026-02-28T04:00 2 automatic_retry, 2026-03-31 3',
    );
    expectNothingFurther(simulation);
  });

  test('adds one retry to a plan that is used up, and only one [D-30]', () => {
    const simulation = subscribed('2026-01-31').gives(
      ...declines(4),
      declinedUntil('2026-03-12'),
      declinedUntil('2026-03-20'),
    );
    simulation.runTo('2026-06-01');
    expect(simulation.sent).toBe(
      '2026-01-31 1, 2026-02-28 2, 2026-02-28T04:00 2 automatic_retry, ' +
        '2026-02-28T12:00 2 automatic_retry, 2026-03-01 2 automatic_retry, ' +
        '2026-03-02 2 automatic_retry, 2026-03-12 2 automatic_retry',
    );
    expect(simulation.state.status).toBe('UNPAID');
    const told = simulation.events.filter((type) => type.includes('retries_exhausted'));
    expect(told).toHaveLength(1);
    expectNothingFurther(simulation);
  });

  test('adds no retry to a plan that has none [D-30]', () => {
    const plan = { delaysMs: [], afterExhausted: 'stay_unpaid' } as const;
    const simulation = new Simulation('2026-01-31', {}, { ...plan, delaysMs: [] });
    simulation.pay();
    simulation.gives(declinedUntil('2026-03-12'));
    simulation.runTo('2026-06-01');
    expect(simulation.sent).toBe('2026-01-31 1, 2026-02-28 2');
    expectNothingFurther(simulation);
  });

  test('in a manual retry moves the planned retry [D-30, D-31]', () => {
    const simulation = subscribed('2026-01-31').gives(declined(), declinedUntil('2026-03-05'));
    simulation.runTo('2026-02-28T01:00');
    simulation.retry();
    simulation.runTo('2026-06-01');
    expect(simulation.sent).toBe(
      '2026-01-31 1, 2026-02-28 2, 2026-02-28T01:00 2 manual_retry, ' +
        '2026-03-05 2 automatic_retry, 2026-03-31 3',
    );
    expectNothingFurther(simulation);
  });
});

test('a decline that needs new details is not retried, and is charged with another card [D-30, D-33]', () => {
  const simulation = until1March({ ...declined(), advice: { kind: 'new_details_needed' } });
  expect(simulation.sent).toBe('2026-01-31 1, 2026-02-28 2');
  simulation.newCard();
  simulation.runTo('2026-06-01');
  expect(simulation.sent).toBe('2026-01-31 1, 2026-02-28 2, 2026-03-01 2 new_method, 2026-03-31 3');
  expectNothingFurther(simulation);
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
    else if (answer.kind === 'declined' && answer.advice?.kind === 'never') {
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
