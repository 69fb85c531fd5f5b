import { describe, expect, it } from 'vitest';
import type { Step } from '../../domain/subscription/decide.ts';
import type { Facts } from '../../workflows/subscription/run.ts';
import { interruptionOf, plan } from '../../workflows/subscription/workflow.ts';
import type { Plan } from '../../workflows/subscription/workflow.ts';

const WAIT: Step = { do: 'wait', until: 5_000, time: 'own', reason: 'charge cycle 2' };
const LOOK_UP: Step = { do: 'wait', until: 5_000, time: 'real', reason: 'ask the gateway again' };
const CHARGE = { do: 'chargeCycle', dueAt: 1_000 } as const;
const FINISH = { do: 'finish' } as const;

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

const resync = { needsResync: true };
const backoff = { isBackingOff: true };
const command = { hasCommand: true };
const awaited = { hasCommand: true, isCommandAwaited: true };
const due = { step: CHARGE };
const over = { step: FINISH };
const behind = { testClock: 'behind its target' } as const;
const afterAdvance = { ...awaited, ...behind, isCommandAfterAdvance: true };
const full = { hasRoom: false };
const open = { isDrained: false };
const successor = { isSuccessorDue: true };

const sleep = (step: Step = WAIT) => ({ kind: 'sleep', step }) as Plan;
const charge: Plan = { kind: 'step', step: CHARGE };
const advance: Plan = { kind: 'advanceClock', until: 5_000 };
const only = (kind: 'resync' | 'command' | 'drain' | 'finish' | 'continueAsNew' | 'reportClock') =>
  ({ kind }) as Plan;

const TABLE: [condition: string, facts: Partial<Facts>, expected: Plan][] = [
  ['nothing is due', {}, sleep()],

  ['a resync is needed', resync, only('resync')],
  ['a resync is needed and a command waits', { ...resync, ...awaited }, only('resync')],
  ['a resync is needed and a charge is due', { ...resync, ...due }, only('resync')],
  ['a resync is needed in a backoff', { ...resync, ...backoff }, sleep()],
  ['a caller waits for it in a backoff', { ...resync, ...backoff, ...awaited }, only('resync')],

  ['a command waits', command, only('command')],
  ['a command waits and a charge is due', { ...awaited, ...due }, only('command')],
  ['an operator’s command waits in a backoff', { ...command, ...backoff }, sleep()],
  ['a caller waits in a backoff', { ...awaited, ...backoff }, only('command')],

  ['a command waits before a later target', { ...awaited, ...behind }, only('command')],
  ['a command waits after an advance', afterAdvance, advance],
  ['it waits and a charge is due', { ...afterAdvance, ...due }, charge],
  ['it waits and no look-up is due', { ...afterAdvance, step: LOOK_UP }, only('command')],
  ['it waits in a backoff', { ...afterAdvance, ...backoff }, only('command')],
  ['it waits, due, in a backoff', { ...afterAdvance, ...due, ...backoff }, only('command')],
  ['it waits with a full history', { ...afterAdvance, ...full }, only('command')],
  ['it waits after the end', { ...afterAdvance, ...over }, only('command')],

  ['a charge is due', due, charge],
  ['a charge is due in a backoff', { ...due, ...backoff }, sleep(CHARGE)],
  ['a charge is due with a handler open', { ...due, ...open }, charge],
  ['a charge is due with a full history', { ...due, ...full }, charge],

  ['the test clock is behind its target', behind, advance],
  ['a charge is due behind the target', { ...behind, ...due }, charge],
  ['no look-up is due behind the target', { ...behind, step: LOOK_UP }, sleep(LOOK_UP)],
  ['the test clock is behind in a backoff', { ...behind, ...backoff }, sleep()],
  ['the test clock is behind, full history', { ...behind, ...full }, only('continueAsNew')],
  ['the test clock is at its target', { testClock: 'at its target' }, only('reportClock')],
  ['the test clock’s target is reported', { testClock: 'reported' }, sleep()],

  ['a handler is open', open, only('drain')],
  ['the subscription is over', over, only('finish')],
  ['it is over with a handler open', { ...over, ...open }, only('drain')],
  ['it is over, resync in a backoff', { ...over, ...resync, ...backoff }, sleep(FINISH)],

  ['a new run is due', successor, only('continueAsNew')],
  ['a new run is due in a backoff', { ...successor, ...backoff }, sleep()],
  ['the history is full', full, only('continueAsNew')],
  ['the history is full in a backoff', { ...full, ...backoff }, only('continueAsNew')],
  ['full, an operator’s command, backoff', { ...full, ...backoff, ...command }, sleep()],
  ['the history is full with a handler open', { ...full, ...open }, only('drain')],
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
      const get = () => {
        isAsked = true;
        return false;
      };
      plan(Object.defineProperty({ ...IDLE, ...facts }, 'isSuccessorDue', { get }));
      return isAsked;
    };
    expect([{}, open, backoff, due].map(asked)).toEqual([true, false, false, false]);
  });
});

describe('interruptionOf', () => {
  it('ends a wait only for a resync, a command, or a test clock with what is due on it', () => {
    const isInterrupting = ([, facts]: (typeof TABLE)[number]) =>
      interruptionOf({ ...IDLE, ...facts }) !== null;
    const kindsOf = (rows: typeof TABLE) =>
      [...new Set(rows.map(([, , { kind }]) => kind))].toSorted().join(' ');
    expect(kindsOf(TABLE.filter(isInterrupting))).toBe('advanceClock command resync step');
    expect(kindsOf(TABLE.filter((row) => !isInterrupting(row)))).toBe(
      'continueAsNew drain finish reportClock sleep step',
    );
  });
});
