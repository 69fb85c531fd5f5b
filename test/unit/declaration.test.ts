import { describe, expect, test } from 'vitest';
import { readDeclaration, declaredIn, isComplete } from '../../api/pages/declaration/form.ts';
import { commandOf, endsAlready, isWithdrawable } from '../../domain/declaration.ts';
import type { Declaration, NamedContract } from '../../domain/declaration.ts';
import { newSubscription } from '../../domain/subscription/state.ts';
import type { SubscriptionState } from '../../domain/subscription/state.ts';

const at = (text: string) => Date.parse(`${text}Z`);
const ADA: Declaration = {
  merchantId: 'mer_1',
  id: 'dcl_1',
  kind: 'cancellation',
  name: 'Ada Example',
  email: 'ada@example.com',
  reference: 'sub_1',
  reason: null,
  endOn: null,
};
const AT_ONCE = { kind: 'cancel', commandId: 'dcl_1', reason: 'cancelled', actor: 'payer' };

function stateOf(changes: Partial<SubscriptionState>): SubscriptionState {
  const terms = {
    amountMinor: 1_999,
    currency: 'USD',
    interval: 'MONTH',
    intervalCount: 1,
    cycleCount: 12,
    upfrontAmountMinor: null,
    trial: null,
  } as const;
  const subscription = newSubscription({
    subscriptionId: 'sub_1',
    merchantId: 'mer_1',
    customerId: 'cus_1',
    terms,
    createdAt: at('2027-01-01T10:00'),
    checkoutExpiresAt: at('2027-01-02T10:00'),
    testClockId: null,
  });
  const currentPeriodEndAt = at('2027-02-01T10:00');
  return { ...subscription, status: 'ACTIVE', currentPeriodEndAt, ...changes };
}

function command(
  declared: Partial<Declaration>,
  changes: Partial<SubscriptionState> = {},
  known: Partial<NamedContract> = {},
) {
  const contract = {
    state: stateOf(changes),
    concludedAt: at('2027-01-01T10:00'),
    declaredAt: at('2027-01-10T10:00'),
    isPaidSince: false,
    ...known,
  };
  return commandOf({ ...ADA, ...declared }, contract, 14);
}

describe('a cancellation [D-62]', () => {
  test('ends the subscription with the paid period or the trial, in UNPAID at once', () => {
    const atPeriodEnd = { ...AT_ONCE, atPeriodEnd: true };
    expect(command({})).toEqual(atPeriodEnd);
    expect(command({}, { status: 'TRIALING' })).toEqual(atPeriodEnd);
    expect(command({}, { status: 'PAUSED' })).toEqual(atPeriodEnd);
    expect(command({}, { status: 'UNPAID' })).toEqual(AT_ONCE);
  });

  test('is left to the merchant with a good cause or a later date, and before the start', () => {
    expect(command({ reason: 'It never came.' })).toBeNull();
    expect(command({ endOn: '2027-02-02' })).toBeNull();
    expect(command({ endOn: '2027-02-01' })).toEqual({ ...AT_ONCE, atPeriodEnd: true });
    expect(command({}, { status: 'CREATED' })).toBeNull();
    // A repeat after a crash finds the result of the command.
    expect(command({}, { status: 'ENDED' })).toEqual({ ...AT_ONCE, atPeriodEnd: true });
  });
});

describe('a declaration [D-62]', () => {
  test('is left to the merchant if a cycle was paid between the declaration and its handling', () => {
    expect(command({}, {}, { isPaidSince: true })).toBeNull();
    expect(command({ kind: 'withdrawal' }, {}, { isPaidSince: true })).toBeNull();
  });

  test('is executed already if the subscription ends with its period and nothing else is wished', () => {
    const contract = (changes: Partial<SubscriptionState>) => ({
      state: stateOf(changes),
      concludedAt: null,
      declaredAt: at('2027-01-10T10:00'),
      isPaidSince: false,
    });
    const ending = contract({ cancelAtPeriodEnd: true });
    expect(endsAlready(ADA, ending)).toBe(true);
    expect(endsAlready(ADA, contract({}))).toBe(false);
    expect(endsAlready({ ...ADA, endOn: '2027-01-20' }, ending)).toBe(false);
    expect(endsAlready({ ...ADA, kind: 'withdrawal' }, ending)).toBe(false);
  });
});

describe('a withdrawal [D-62]', () => {
  test('ends the subscription at once in its period, and is left to the merchant after it', () => {
    expect(command({ kind: 'withdrawal' })).toEqual(AT_ONCE);
    const late = { declaredAt: at('2027-01-16T12:00') };
    expect(command({ kind: 'withdrawal' }, {}, late)).toBeNull();
  });

  test('is in time until the fourteenth day after the day of the contract ends in the last time zone', () => {
    const contract = (declaredAt: string) => ({
      concludedAt: at('2027-01-01T23:59'),
      declaredAt: at(declaredAt),
    });
    expect(isWithdrawable(contract('2027-01-16T11:59'), 14)).toBe(true);
    expect(isWithdrawable(contract('2027-01-16T12:00'), 14)).toBe(false);
    expect(isWithdrawable({ ...contract('2027-01-02T00:00'), concludedAt: null }, 14)).toBeNull();
    // Saturday 30 January 2027 and Sunday the 31st: the period ends with Monday 1 February.
    const saturday = { concludedAt: at('2027-01-16T10:00') };
    const sunday = { concludedAt: at('2027-01-17T10:00') };
    for (const { concludedAt } of [saturday, sunday]) {
      expect(isWithdrawable({ concludedAt, declaredAt: at('2027-02-02T11:59') }, 14)).toBe(true);
      expect(isWithdrawable({ concludedAt, declaredAt: at('2027-02-02T12:00') }, 14)).toBe(false);
    }
  });
});

describe('the form of a declaration [D-62]', () => {
  const RIGHT = { name: ' Ada Example ', email: 'ada@example.com', reference: 'sub_1' };
  const read = (fields: object, kind: 'cancellation' | 'withdrawal' = 'cancellation') =>
    readDeclaration(new URLSearchParams({ ...RIGHT, ...fields }), kind);

  test('is read without the spaces around its values, and of a withdrawal without cause and date', () => {
    const more = { kind: 'cause', reason: ' It never came. ', endOn: '2027-03-31' };
    const ada = { name: 'Ada Example', email: 'ada@example.com', reference: 'sub_1' };
    expect(declaredIn(read(more))).toEqual({
      ...ada,
      reason: 'It never came.',
      endOn: '2027-03-31',
    });
    expect(declaredIn(read(more, 'withdrawal'))).toEqual({ ...ada, reason: null, endOn: null });
  });

  test.for([
    [{ name: '' }, false],
    [{ email: 'ada@' }, false],
    [{ reference: ' ' }, false],
    [{ reference: 'x'.repeat(256) }, false],
    [{ kind: 'cause', reason: '' }, false],
    [{ kind: 'cause', reason: 'x'.repeat(1_001) }, false],
    [{ kind: 'cause', reason: 'a\u0000b' }, false],
    [{ kind: 'cause', reason: 'x\r\n'.repeat(500).trim() }, true],
    [{ reason: 'Not dropped without a word' }, false],
    [{ endOn: '2027-02-30' }, false],
    [{ endOn: '31.3.2027' }, false],
    [{ endOn: '2028-02-29' }, true],
  ] as const)('with %o is complete: %s', ([fields, expected]) => {
    expect(isComplete(read(fields))).toBe(expected);
  });
});
