import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CURRENCIES } from '../../domain/currencies.ts';
import { DomainError } from '../../domain/errors.ts';
import { readFields } from '../../api/http/body.ts';
import { editFields, editRequestProblems } from '../../api/routes/subscriptions/command-routes.ts';
import { actionForCommand } from '../../domain/subscription/actions.ts';
import type { CommandKind } from '../../domain/subscription/commands.ts';
import { describe as describeState } from '../../domain/subscription/describe.ts';
import { decide } from '../../domain/subscription/decide.ts';
import { readCommand } from '../../domain/subscription/read-command.ts';
import { stateProblem } from '../../domain/subscription/recorded-state.ts';
import { upcomingCharges } from '../../domain/subscription/upcoming.ts';
import { validateCommand } from '../../domain/subscription/validate-command.ts';
import { anyArgument } from '../support/any-json.ts';
import { Simulation } from '../support/simulation.ts';

const KINDS: readonly CommandKind[] = [
  'edit',
  'cancel',
  'pause',
  'unpause',
  'manualRetry',
  'completeCheckout',
  'replacePaymentMethod',
];

const refused = (message: string) => ({ ok: false, code: 'bad_request', message });

describe('the argument of a command', () => {
  test.each<[CommandKind, unknown, string]>([
    [
      'edit',
      { interval: ['MONTH'], intervalCount: 1, newNextPaymentAt: 1 },
      'interval must be one of DAY, WEEK, MONTH, YEAR',
    ],
    [
      'edit',
      { newAmountMinor: '1999', newCycleCount: null },
      'newAmountMinor must be an integer in the smallest currency unit; ' +
        'newCycleCount must be an integer of at least 1',
    ],
    [
      'edit',
      { interval: 'MONTH', intervalCount: 121 },
      'newNextPaymentAt is required to edit the interval; ' +
        'intervalCount must be an integer from 1 to 120 for interval MONTH',
    ],
    [
      'edit',
      { amount: 1_999 },
      'the argument must have newAmountMinor, newCycleCount, newNextPaymentAt or interval',
    ],
    ['edit', [], 'the argument must be a JSON object'],
    ['unpause', null, 'newNextPaymentAt is required'],
    [
      'unpause',
      { newNextPaymentAt: 2 ** 53 },
      'newNextPaymentAt must be epoch milliseconds before the year 2200',
    ],
    [
      'pause',
      { resumeAt: 1_800_000_000 },
      'resumeAt must be epoch milliseconds, and looks like seconds',
    ],
    ['cancel', { reason: 1 }, 'reason must be one of cancelled, checkout_cancelled'],
    [
      'completeCheckout',
      { paymentToken: '' },
      'paymentToken must be text of 1 to 255 characters without NUL characters; ' +
        'checkoutSessionId is required',
    ],
  ])('is refused for %s when it is %j [D-32]', (kind, argument, message) => {
    expect(readCommand(kind, argument, 'cmd_1')).toEqual(refused(message));
  });

  test('is read with its known fields only [D-32]', () => {
    const given = { newAmountMinor: 2_500, kind: 'cancel', commandId: 'x', note: 'by phone' };
    expect(readCommand('edit', given, 'cmd_1')).toEqual({
      ok: true,
      command: { kind: 'edit', commandId: 'cmd_1', newAmountMinor: 2_500 },
    });
    expect(readCommand('cancel', undefined, 'cmd_2')).toEqual({
      ok: true,
      command: { kind: 'cancel', commandId: 'cmd_2', reason: 'cancelled' },
    });
  });

  test('keeps the currency row of an edit and is refused if this row is malformed [D-03]', () => {
    const currencyRow = { ...CURRENCIES.get('USD')!, minimum: 10 };
    expect(readCommand('edit', { newAmountMinor: 50, currencyRow }, 'cmd_1')).toEqual({
      ok: true,
      command: { kind: 'edit', commandId: 'cmd_1', newAmountMinor: 50, currencyRow },
    });
    const problem = refused('currencyRow must be a row of the currency table');
    for (const wrong of [null, [], 'USD', {}, { ...currencyRow, minimum: '10' }]) {
      const given = { newAmountMinor: 50, currencyRow: wrong };
      expect(readCommand('edit', given, 'cmd_1')).toEqual(problem);
    }
  });

  test('is refused when the command id is not text of 1 to 255 characters without NUL [D-32]', () => {
    const wrong = refused('commandId must be text of 1 to 255 characters without NUL characters');
    for (const id of ['', 'a\0', '\ud800', 'a'.repeat(256), 7, {}]) {
      expect(readCommand('pause', {}, id)).toEqual(wrong);
    }
  });

  test('accepts a command id of 255 code points outside the basic plane [IF-8]', () => {
    expect(readCommand('pause', {}, '𠮷'.repeat(255)).ok).toBe(true);
  });

  test('may be any JSON without stopping the subscription [D-32]', () => {
    const simulations = [new Simulation('2027-01-31T00:00:00Z')];
    for (const status of ['ACTIVE', 'UNPAID', 'PAUSED']) {
      const simulation = new Simulation('2027-01-31T00:00:00Z');
      simulation.pay();
      if (status === 'UNPAID') {
        simulation.replies.push({ kind: 'declined', code: 'card_declined' });
        simulation.runTo('2027-02-28T00:00:00Z');
      }
      if (status === 'PAUSED') simulation.command('pause', {});
      expect(simulation.state.status).toBe(status);
      simulations.push(simulation);
    }
    let executed = 0;
    fc.assert(
      fc.property(
        fc.constantFrom(...simulations),
        fc.constantFrom(...KINDS),
        anyArgument,
        ({ state, now }, kind, argument) => {
          const read = readCommand(kind, argument, 'cmd_1');
          if (!read.ok || !validateCommand(state, read.command, now).ok) return;
          executed += 1;
          const time = { now, realNow: now };
          const after = actionForCommand(state, read.command, time, 'pmt_2').change.state;
          expect(stateProblem(JSON.parse(JSON.stringify(after)))).toBeNull();
          const entries = [after.latest];
          const rest = { productName: null, refused: null, heldBecause: null };
          expect(typeof describeState(after, now, { ...rest, entries })).toBe('string');
          expect(upcomingCharges(after, 12, now).length).toBeLessThanOrEqual(12);
          decide(after, now, now);
        },
      ),
      { numRuns: 5_000 },
    );
    expect(executed).toBeGreaterThan(100);
  });
});

test('an edit is valid as a signal exactly when it is valid as a request [D-15, D-32]', () => {
  const wireOf = (edit: Record<string, unknown>) =>
    Object.fromEntries(
      Object.entries({
        newAmount: edit['newAmountMinor'],
        newCycleCount: edit['newCycleCount'],
        newNextPaymentDate: edit['newNextPaymentAt'],
        interval: edit['interval'],
        intervalCount: edit['intervalCount'],
      }).filter(([, value]) => value !== undefined),
    );
  const isRequest = (body: Record<string, unknown>): boolean => {
    try {
      readFields(editFields, { subscriptionId: 'sub_1', ...body }, editRequestProblems);
      return Object.keys(body).length > 0;
    } catch (error) {
      if (error instanceof DomainError) return false;
      throw error;
    }
  };
  let valid = 0;
  fc.assert(
    fc.property(anyArgument, (argument) => {
      // In a request, null and empty text mean an absent field, so the comparison leaves them out.
      if (typeof argument !== 'object' || argument === null || Array.isArray(argument)) return;
      const edit = Object.fromEntries(
        Object.entries(argument).filter(([, value]) => value !== null && value !== ''),
      );
      const { ok } = readCommand('edit', edit, 'cmd_1');
      expect(ok).toBe(isRequest(wireOf(edit)));
      if (ok) valid += 1;
    }),
    { numRuns: 5_000 },
  );
  // About 136 of the arguments are valid edits, with a standard deviation of 12.
  expect(valid).toBeGreaterThan(50);
});
