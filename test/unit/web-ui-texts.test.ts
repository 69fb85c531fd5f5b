import { describe, expect, test } from 'vitest';
import { decide } from '../../domain/subscription/decide.ts';
import { describeWait, summarize } from '../../domain/subscription/describe.ts';
import type { Terms } from '../../domain/subscription/terms.ts';
import { declined, declines, Simulation, subscribed } from '../support/simulation.ts';

const from10January = (terms: Partial<Terms> = {}) => subscribed('2026-01-10', terms);

/** The name of the timer on which the workflow sleeps now. */
function timerOf({ state, now }: Simulation): string {
  const step = decide(state, now, now);
  if (step.do !== 'wait' || step.until === null) throw new Error(`no timer, but ${step.do}`);
  return describeWait({ ...step, until: step.until });
}

/** The paragraph of the workflow's details that names the signals for operators; undefined if there is none. */
const operatorLine = ({ words }: Simulation) =>
  words.split('\n\n').find((paragraph) => paragraph.startsWith('**An operator can now**'));

const lineWith = (signals: string) =>
  `**An operator can now** send these signals: ${signals}. ` +
  '`recheck` reads the row again, and asks the gateway about a payment without an outcome. ' +
  '*Request Cancellation* cancels the subscription at once, like `cancel`.';

describe('the summary of a workflow', () => {
  test.each<[Partial<Terms>, string | null, string]>([
    [{}, 'Garden Letters', 'Garden Letters, 19.99 USD every month'],
    [{ interval: 'WEEK', intervalCount: 2, currency: 'JPY' }, 'Tea', 'Tea, 1999 JPY every 2 weeks'],
    [{}, null, '19.99 USD every month'],
  ])('of %j and the product name %j is %s', (terms, name, summary) => {
    expect(summarize(from10January(terms).state.terms, name)).toBe(summary);
  });

  test('has at most 200 bytes, and cuts no character in two', () => {
    const long = summarize(from10January().state.terms, '🌱'.repeat(60));
    expect(long).toBe(`${'🌱'.repeat(40)}…, 19.99 USD every month`);
    expect(Buffer.byteLength(long)).toBeLessThanOrEqual(200);
  });
});

test('the name of a timer has the amount and the date of the next charge or retry, or the date at which the checkout expires', () => {
  const owing = from10January().gives(declined());
  owing.runTo('2026-02-10');
  const trial = { interval: 'WEEK', count: 1 } as const;
  const inTrial = from10January({ trial, upfrontAmountMinor: 500 });
  expect([new Simulation('2026-01-10'), from10January(), owing, inTrial].map(timerOf)).toEqual([
    'checkout expires on 2026-01-11 00:00 UTC',
    'charge cycle 2 (19.99 USD) on 2026-02-10 00:00 UTC',
    'retry cycle 2 (19.99 USD) on 2026-02-10 04:00 UTC',
    'trial ends, charge cycle 1 (5.00 USD) on 2026-01-17 00:00 UTC',
  ]);
});

function decline(simulation: Simulation): Simulation {
  simulation.gives(...declines(2)).runTo('2026-02-10');
  return simulation;
}

test.for<[state: string, signals: string, begin: (simulation: Simulation) => unknown]>([
  ['ACTIVE', '`edit`, `pause`, `cancel`', () => undefined],
  [
    'cancelled at the end of its period',
    '`edit`, `resume`, `cancel`',
    (simulation) => simulation.cancelAtPeriodEnd(),
  ],
  ['PAUSED', '`edit`, `unpause`, `cancel`', (simulation) => simulation.pause()],
  ['UNPAID', '`edit`, `pause`, `manualRetry`, `cancel`', decline],
  ['in the cooldown', '`edit`, `pause`, `cancel`', (simulation) => decline(simulation).retry()],
])('the details for operators of a subscription that is %s name %s', ([, signals, begin]) => {
  const simulation = from10January();
  begin(simulation);
  expect(operatorLine(simulation)).toBe(lineWith(signals));
});

test('the details for operators name only cancel before the first payment, and nothing after the end', () => {
  const simulation = new Simulation('2026-01-10');
  expect(operatorLine(simulation)).toBe(lineWith('`cancel`'));
  simulation.cancel();
  expect(operatorLine(simulation)).toBeUndefined();
});
