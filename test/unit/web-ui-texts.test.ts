import { describe, expect, test } from 'vitest';
import { decide } from '../../domain/subscription/decide.ts';
import {
  describe as details,
  describeWait,
  summarize,
} from '../../domain/subscription/describe.ts';
import type { Terms } from '../../domain/subscription/state.ts';
import { Simulation } from '../support/simulation.ts';

const FEB_10 = '2026-02-10T00:00:00Z';
const declined = { kind: 'declined', code: 'card_declined' } as const;

/** Creates a subscription of 19.99 USD a month from 10 January, and completes its checkout. */
function subscribed(terms: Partial<Terms> = {}): Simulation {
  const simulation = new Simulation('2026-01-10T00:00:00Z', terms);
  simulation.pay();
  return simulation;
}

/** The name of the timer on which the workflow sleeps now. */
function timerOf({ state, now }: Simulation): string {
  const step = decide(state, now, now);
  if (step.do !== 'wait' || step.until === null) throw new Error(`no timer, but ${step.do}`);
  return describeWait({ ...step, until: step.until });
}

/** The paragraph of the workflow's details that names the signals for operators; undefined if there is none. */
const operatorLine = ({ state, now }: Simulation) =>
  details(state, now)
    .split('\n\n')
    .find((paragraph) => paragraph.startsWith('**An operator can now**'));

const REST =
  '`recheck` reads the row again, and asks the gateway about a payment without an outcome.';

describe('the summary of a workflow', () => {
  const summaryOf = (terms: Partial<Terms>, name: string | null) =>
    summarize(subscribed(terms).state.terms, name);

  test('names the product and the price', () => {
    expect(summaryOf({}, 'Garden Letters')).toBe('Garden Letters, 19.99 USD every month');
    expect(summaryOf({ interval: 'WEEK', intervalCount: 2, currency: 'JPY' }, 'Tea')).toBe(
      'Tea, 1999 JPY every 2 weeks',
    );
  });

  test('is only the price if the subscription has no product name', () => {
    expect(summaryOf({}, null)).toBe('19.99 USD every month');
  });

  test('has at most 200 bytes, and cuts no character in two', () => {
    const long = summaryOf({}, '🌱'.repeat(60));
    expect(long).toBe(`${'🌱'.repeat(40)}…, 19.99 USD every month`);
    expect(Buffer.byteLength(long)).toBeLessThanOrEqual(200);
  });
});

describe('the name of a timer', () => {
  test('has the amount and the date of the next charge', () => {
    expect(timerOf(subscribed())).toBe('charge cycle 2 (19.99 USD) on 2026-02-10 00:00 UTC');
  });

  test('has the amount of the owed cycle and the date of its retry', () => {
    const simulation = subscribed();
    simulation.replies.push(declined);
    simulation.runTo(FEB_10);
    expect(timerOf(simulation)).toBe('retry cycle 2 (19.99 USD) on 2026-02-10 04:00 UTC');
  });

  test('has the upfront amount of the first charge after a trial', () => {
    const simulation = subscribed({
      trial: { interval: 'WEEK', count: 1 },
      upfrontAmountMinor: 500,
    });
    expect(timerOf(simulation)).toBe(
      'trial ends, charge cycle 1 (5.00 USD) on 2026-01-17 00:00 UTC',
    );
  });

  test('has the date at which the checkout expires', () => {
    expect(timerOf(new Simulation('2026-01-10T00:00:00Z'))).toBe(
      'checkout expires on 2026-01-11 00:00 UTC',
    );
  });
});

test.for<[state: string, signals: string, begin: (simulation: Simulation) => void]>([
  ['ACTIVE', '`edit`, `pause`, `cancel`', () => undefined],
  [
    'cancelled at the end of its period',
    '`edit`, `resume`, `cancel`',
    (simulation) => simulation.command('cancel', { reason: 'cancelled', atPeriodEnd: true }),
  ],
  ['PAUSED', '`edit`, `unpause`, `cancel`', (simulation) => simulation.command('pause', {})],
  ['UNPAID', '`edit`, `pause`, `manualRetry`, `cancel`', decline],
  [
    'UNPAID during the cooldown',
    '`edit`, `pause`, `cancel`',
    (simulation) => {
      decline(simulation);
      simulation.command('manualRetry', {});
    },
  ],
])('the details for operators of a subscription that is %s name %s', ([, signals, begin]) => {
  const simulation = subscribed();
  begin(simulation);
  expect(operatorLine(simulation)).toBe(
    `**An operator can now** send these signals: ${signals}. ${REST}`,
  );
});

test('the details for operators name only cancel before the first payment, and nothing after the end', () => {
  const simulation = new Simulation('2026-01-10T00:00:00Z');
  expect(operatorLine(simulation)).toBe(
    `**An operator can now** send these signals: \`cancel\`. ${REST}`,
  );
  simulation.command('cancel', { reason: 'cancelled' });
  expect(operatorLine(simulation)).toBeUndefined();
});

function decline(simulation: Simulation): void {
  simulation.replies.push(declined, declined);
  simulation.runTo(FEB_10);
}
