import { describe, expect, it } from 'vitest';
import type { Step } from '../../domain/subscription/decide.ts';
import { interruptionOf, plan } from '../../workflows/subscription/plan.ts';
import type { Facts, Plan } from '../../workflows/subscription/plan.ts';

const WAIT: Step = { do: 'wait', until: 5_000, time: 'own', reason: 'charge cycle 2' };
const ASK_GATEWAY: Step = {
  do: 'wait',
  until: 5_000,
  time: 'real',
  reason: 'ask the gateway again',
};
const CHARGE = { do: 'chargeCycle', dueAt: 1_000 } as const;

/** An idle run in real time whose next charge is not due yet. */
const IDLE: Facts = {
  needsResync: false,
  isBackingOff: false,
  hasCommand: false,
  isCommandAwaited: false,
  isCommandAfterAdvance: false,
  step: WAIT,
  testClock: null,
  hasRoom: true,
  isDrained: true,
  isSuccessorDue: false,
};
const AWAITED = { hasCommand: true, isCommandAwaited: true };
const AFTER_ADVANCE = {
  ...AWAITED,
  isCommandAfterAdvance: true,
  testClock: 'behind its target',
} as const;
const SLEEP = { kind: 'sleep', step: WAIT } as const;

const TABLE: [condition: string, facts: Partial<Facts>, expected: Plan][] = [
  ['nothing is due', {}, SLEEP],

  ['a resync is needed', { needsResync: true }, { kind: 'resync' }],
  ['a resync is needed and a command waits', { needsResync: true, ...AWAITED }, { kind: 'resync' }],
  [
    'a resync is needed and a charge is due',
    { needsResync: true, step: CHARGE },
    { kind: 'resync' },
  ],
  ['a resync is needed during a backoff', { needsResync: true, isBackingOff: true }, SLEEP],
  [
    'a resync is needed during a backoff and a caller waits',
    { needsResync: true, isBackingOff: true, ...AWAITED },
    { kind: 'resync' },
  ],

  ['a command waits', { hasCommand: true }, { kind: 'command' }],
  ['a command waits and a charge is due', { ...AWAITED, step: CHARGE }, { kind: 'command' }],
  ['an operator’s command waits during a backoff', { hasCommand: true, isBackingOff: true }, SLEEP],
  ['a caller waits during a backoff', { ...AWAITED, isBackingOff: true }, { kind: 'command' }],

  [
    'a command waits and the test clock is behind a target that was set later',
    { ...AWAITED, testClock: 'behind its target' },
    { kind: 'command' },
  ],
  ['a command waits after an advance', AFTER_ADVANCE, { kind: 'advanceClock', until: 5_000 }],
  [
    'a command waits after an advance and a charge is due',
    { ...AFTER_ADVANCE, step: CHARGE },
    { kind: 'step', step: CHARGE },
  ],
  [
    'a command waits after an advance and a look-up at the gateway is not due',
    { ...AFTER_ADVANCE, step: ASK_GATEWAY },
    { kind: 'command' },
  ],
  [
    'a command waits after an advance during a backoff',
    { ...AFTER_ADVANCE, isBackingOff: true },
    { kind: 'command' },
  ],
  [
    'a command waits after an advance and a charge is due during a backoff',
    { ...AFTER_ADVANCE, step: CHARGE, isBackingOff: true },
    { kind: 'command' },
  ],
  [
    'a command waits after an advance and the run’s history is too long',
    { ...AFTER_ADVANCE, hasRoom: false },
    { kind: 'command' },
  ],
  [
    'a command waits after an advance and the subscription is over',
    { ...AFTER_ADVANCE, step: { do: 'finish' } },
    { kind: 'command' },
  ],

  ['a charge is due', { step: CHARGE }, { kind: 'step', step: CHARGE }],
  [
    'a charge is due during a backoff',
    { step: CHARGE, isBackingOff: true },
    { kind: 'sleep', step: CHARGE },
  ],
  [
    'a charge is due with a handler open',
    { step: CHARGE, isDrained: false },
    { kind: 'step', step: CHARGE },
  ],
  [
    'a charge is due and the run’s history is too long',
    { step: CHARGE, hasRoom: false },
    { kind: 'step', step: CHARGE },
  ],

  [
    'the test clock is behind its target',
    { testClock: 'behind its target' },
    { kind: 'advanceClock', until: 5_000 },
  ],
  [
    'a charge is due on a test clock behind its target',
    { testClock: 'behind its target', step: CHARGE },
    { kind: 'step', step: CHARGE },
  ],
  [
    'the next look-up at the gateway is not due, on a test clock behind its target',
    { testClock: 'behind its target', step: ASK_GATEWAY },
    { kind: 'sleep', step: ASK_GATEWAY },
  ],
  [
    'the test clock is behind its target during a backoff',
    { testClock: 'behind its target', isBackingOff: true },
    SLEEP,
  ],
  [
    'the test clock is behind its target and the run’s history is too long',
    { testClock: 'behind its target', hasRoom: false },
    { kind: 'continueAsNew' },
  ],
  ['the test clock is at its target', { testClock: 'at its target' }, { kind: 'reportClock' }],
  ['the test clock’s target is reported', { testClock: 'reported' }, SLEEP],

  ['a handler is open', { isDrained: false }, { kind: 'drain' }],
  ['the subscription is over', { step: { do: 'finish' } }, { kind: 'finish' }],
  [
    'the subscription is over with a handler open',
    { step: { do: 'finish' }, isDrained: false },
    { kind: 'drain' },
  ],
  [
    'the subscription is over and needs a resync during a backoff',
    { step: { do: 'finish' }, needsResync: true, isBackingOff: true },
    { kind: 'sleep', step: { do: 'finish' } },
  ],

  ['a new run is due', { isSuccessorDue: true }, { kind: 'continueAsNew' }],
  ['a new run is due during a backoff', { isSuccessorDue: true, isBackingOff: true }, SLEEP],
  ['the run’s history is too long', { hasRoom: false }, { kind: 'continueAsNew' }],
  [
    'the run’s history is too long during a backoff',
    { hasRoom: false, isBackingOff: true },
    { kind: 'continueAsNew' },
  ],
  [
    'the run’s history is too long during a backoff with an operator’s command',
    { hasRoom: false, isBackingOff: true, hasCommand: true },
    SLEEP,
  ],
  [
    'the run’s history is too long with a handler open',
    { hasRoom: false, isDrained: false },
    { kind: 'drain' },
  ],
];

describe('plan', () => {
  it.each(TABLE.map(([condition, ...row]) => [row[1].kind, condition, ...row] as const))(
    'is %s when %s',
    (_kind, _condition, facts, expected) => {
      expect(plan({ ...IDLE, ...facts })).toEqual(expected);
    },
  );

  it('asks whether a new run is due only when there is nothing else to do', () => {
    const asked = (facts: Partial<Facts>): boolean => {
      let isAsked = false;
      const all = Object.defineProperty({ ...IDLE, ...facts }, 'isSuccessorDue', {
        get: () => {
          isAsked = true;
          return false;
        },
      });
      plan(all);
      return isAsked;
    };
    expect(asked({})).toBe(true);
    expect(asked({ isDrained: false })).toBe(false);
    expect(asked({ isBackingOff: true })).toBe(false);
    expect(asked({ step: CHARGE })).toBe(false);
  });
});

describe('interruptionOf', () => {
  it('ends a wait only for a resync, a command, or a test clock with what is due on it', () => {
    const interrupting = TABLE.filter(
      ([, facts]) => interruptionOf({ ...IDLE, ...facts }) !== null,
    );
    const kinds = new Set(interrupting.map(([, , { kind }]) => kind));
    expect([...kinds].toSorted()).toEqual(['advanceClock', 'command', 'resync', 'step']);
    const others = TABLE.filter((row) => !interrupting.includes(row));
    const otherKinds = new Set(others.map(([, , { kind }]) => kind));
    expect([...otherKinds].toSorted()).toEqual([
      'continueAsNew',
      'drain',
      'finish',
      'reportClock',
      'sleep',
      'step',
    ]);
  });
});
