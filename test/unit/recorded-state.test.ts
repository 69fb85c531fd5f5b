import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  readState,
  stateProblem,
  UnreadableStateError,
} from '../../domain/subscription/recorded-state.ts';
import type { SubscriptionState } from '../../domain/subscription/state.ts';
import { Simulation } from '../support/simulation.ts';

/** The state of an UNPAID subscription with an owed cycle and an attempt whose outcome is unknown. */
function unpaid(): SubscriptionState {
  const simulation = new Simulation('2027-01-31T00:00:00Z');
  simulation.pay();
  simulation.replies.push({ kind: 'declined', code: 'card_declined' }, { kind: 'unknown' });
  simulation.runTo('2027-02-28T04:00:00Z');
  expect(simulation.state.openAttempt).not.toBeNull();
  return JSON.parse(JSON.stringify(simulation.state)) as SubscriptionState;
}

/** The path of every field in a value; an array counts as one field. */
function pathsIn(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [path];
  return [
    ...(path.length > 0 ? [path] : []),
    ...Object.entries(value).flatMap(([key, member]) => pathsIn(member, [...path, key])),
  ];
}

function withValue(state: object, [key, ...rest]: string[], value: unknown): object {
  const member = (state as Record<string, unknown>)[key!];
  return { ...state, [key!]: rest.length === 0 ? value : withValue(member as object, rest, value) };
}

describe('a recorded state', () => {
  test.each<[string[], unknown, string]>([
    [['terms', 'interval'], ['MONTH'], 'terms.interval must be one of DAY, WEEK, MONTH, YEAR'],
    [['terms', 'currency'], 'XXX', 'terms.currency must be a currency of the table'],
    [['terms'], null, 'terms must be an object'],
    [['schemaVersion'], 2, 'schemaVersion must be one of 1'],
    [['anchorAt'], 8.64e15 + 1, 'anchorAt must be epoch milliseconds'],
    [['owed', 'cycleNumber'], 7, 'owed.cycleNumber must be 1 more than cyclesCharged'],
    [['owed'], null, 'owed must be an object while an attempt is open'],
    [['latest', 'at'], null, 'latest.at must be epoch milliseconds'],
    [
      ['latest', 'kind'],
      'moved',
      'latest.kind must be one of created, imported, edited, cancellation_planned, cancellation_withdrawn, manual_retry, ended, paused, unpaused, trial_begun, authentication_begun, method_replaced, paid, declined, limited, unanswered, payer_asked, review, unsent, disputed, late_charge, details_updated, notice_given, notice_missed, adopted',
    ],
    [['status'], 'LOST', 'status must be one of CREATED, TRIALING, ACTIVE, UNPAID, PAUSED, ENDED'],
  ])(
    'cannot be read, with an error that names the field, when %j is %j',
    (path, value, problem) => {
      const state = withValue(unpaid(), path, value);
      expect(stateProblem(state)).toBe(problem);
      expect(() => readState(state)).toThrow(
        new UnreadableStateError(`the recorded state of sub_1 cannot be read: ${problem}`),
      );
    },
  );

  test('cannot be read when it is ACTIVE without a date to charge', () => {
    const simulation = new Simulation('2027-01-31T00:00:00Z');
    simulation.pay();
    expect(stateProblem({ ...simulation.state, anchorAt: null })).toBe(
      'anchorAt must be epoch milliseconds in ACTIVE',
    );
    expect(stateProblem({ ...simulation.state, nextIndex: Number.MAX_SAFE_INTEGER })).toBe(
      'nextIndex must be the index of a date',
    );
  });

  test('cannot be read when any field is missing or has another type [D-32]', () => {
    const state = unpaid();
    expect(stateProblem(state)).toBeNull();
    const paths = pathsIn(state);
    expect(paths.length).toBeGreaterThan(45);
    for (const path of paths) {
      for (const wrong of [undefined, [['x']], -1.5]) {
        const problem = stateProblem(withValue(state, path, wrong));
        expect(problem, `${path.join('.')} is ${String(wrong)}`).toContain(path[0]);
      }
    }
    for (const wrong of [null, undefined, 'ACTIVE', [], 7]) {
      expect(stateProblem(wrong)).toBe('it must be an object');
    }
  });

  test('can be read from the argument of every recorded history that contains one [D-32]', () => {
    const folder = 'test/replay/histories';
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    const states = files
      .filter((name) => name.endsWith('.json'))
      .flatMap((file) => {
        const { events } = JSON.parse(readFileSync(`${folder}/${file}`, 'utf8')) as {
          events: {
            workflowExecutionStartedEventAttributes?: { input?: { payloads?: { data: string }[] } };
          }[];
        };
        const payload = events[0]?.workflowExecutionStartedEventAttributes?.input?.payloads?.[0];
        if (!payload) return [];
        const { state } = JSON.parse(Buffer.from(payload.data, 'base64').toString()) as {
          state?: unknown;
        };
        return state === undefined ? [] : [{ file, problem: stateProblem(state) }];
      });
    expect(states.length).toBeGreaterThan(20);
    expect(states.filter(({ problem }) => problem !== null)).toEqual([]);
  });
});
