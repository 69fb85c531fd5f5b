import { expect, test } from 'vitest';
import { explanationLines } from '../../cli/explain/explanation.ts';
import { textOf } from '../../domain/subscription/entries.ts';
import { subscribed } from '../support/simulation.ts';

const { state, now } = subscribed('2026-01-10');

test('the text of an edit has the amount with its currency [D-§7]', () => {
  const edit = { kind: 'edited', version: 2, at: now, actor: 'merchant', commandId: 'c' } as const;
  expect(textOf({ ...edit, amountMinor: 2_499 }, state.terms).what).toBe(
    'edited: amount 24.99 USD',
  );
  const inYen = { ...edit, amountMinor: 2_499, cycleCount: 24 };
  expect(textOf(inYen, { currency: 'JPY' }).what).toBe('edited: amount 2499 JPY, cycles 24');
});

test('the explanation of a subscription has no characters of Markdown [D-§7]', () => {
  const lines = explanationLines({
    state,
    productName: null,
    heldAt: null,
    now,
    realNow: now,
    entries: [{ ...state.latest, statusAfter: 'ACTIVE' }],
    attempts: [],
    problems: [],
  });
  expect(lines.find((line) => line.includes('Request Cancellation'))).toBe(
    'An operator can now send these signals: edit, pause, cancel. recheck reads the row again, and asks the ' +
      'gateway about a payment without an outcome. Request Cancellation cancels the subscription at once, like cancel.',
  );
  expect(lines.filter((line) => /[*`]/.test(line))).toEqual([]);
});
