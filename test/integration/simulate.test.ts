import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { changeSettings } from '../../db/repositories/merchants/settings.ts';
import { DEFAULT_CARD_LIMITS } from '../../domain/card-limits.ts';
import { ApiRefusal } from '../../tools/scripts/client/merchant-client.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';
import { newMethodCommand } from '../support/card-tokens.ts';
import { countRows } from '../support/database.ts';
import { onDevServer as test } from '../support/environment.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import type { Shop } from '../support/shop.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/**
 * A simulated script, and the same script on a test clock over HTTP: dates, amounts, statuses, events and the end of
 * the payer's access are equal. `SIMULATIONS` sets the number of random scripts.
 */

const SCRIPTS = Number(process.env['SIMULATIONS'] ?? 24);
const AT_ONCE = 6;
const START = Date.parse('2027-01-31T12:00:00Z');
const DAY = 86_400_000;

interface Command extends Record<string, unknown> {
  at: number;
  command: 'edit' | 'pause' | 'unpause' | 'cancel' | 'resume' | 'retry' | 'new_card';
}

type Advice =
  | { advice?: 'never' | 'new_details_needed' }
  | { advice: 'not_before'; waitHours: number };

interface Script {
  terms: Record<string, unknown>;
  outcomes: ({ cycle: number; outcome: string; times: number } & Advice)[];
  commands: Command[];
}

interface Step {
  at: number;
  what: string;
  why: string;
  status: string;
  currentPeriodEnd?: number;
  eventTypes: string[];
  cycleNumber?: number;
  attempt?: number;
  amount?: number;
  cause?: string;
  errorCode?: string;
  refusal?: { errorCode: string };
}

interface Simulated {
  data: Step[];
  status: string;
  nextPaymentDate?: number;
  isComplete: boolean;
}

const PATHS = {
  edit: '/subscription/edit',
  pause: '/subscription/merchant/pause',
  unpause: '/subscription/merchant/unpause',
  cancel: '/subscription/merchant/cancel',
  resume: '/subscription/merchant/resume',
  retry: '/subscription/manual-retry',
} as const;

/** Lives the script on a test clock. `steps`: the simulated ones, whose dates the clock visits. */
async function live(
  env: TestEnvironment,
  shop: Shop,
  { outcomes, commands: scripted }: Script,
  { body, steps }: { body: { testClockId: string }; steps: Step[] },
) {
  const { testClockId } = body;
  const { subscriptionId } = await shop.merchant.post<{ subscriptionId: string }>(
    '/subscription/create',
    body,
  );
  const ref = { merchantId: env.merchantId, subscriptionId };
  const declined = new Set<number>();
  const declineCycle = async (cycleNumber: number) => {
    if (declined.has(cycleNumber)) return;
    declined.add(cycleNumber);
    for (const { cycle, outcome: code, times: count, ...advice } of outcomes) {
      if (cycle !== cycleNumber) continue;
      await shop.merchant.post('/test-helpers/decline-next', {
        subscriptionId,
        code,
        count,
        ...advice,
      });
    }
  };
  await env.confirmStart(ref);
  await declineCycle(1);
  await payCheckout(env, ref);
  let now = START;
  const advanceTo = async (date: number) => {
    if (date <= now) return;
    await env.advance(testClockId, date);
    now = date;
  };
  const refused: string[] = [];
  const commands = [...scripted];
  const executeUntil = async (date: number) => {
    for (let [next] = commands; next && next.at < date; [next] = commands) {
      commands.shift();
      await advanceTo(next.at);
      const { at: _, command, ...fields } = next;
      if (command === 'new_card') {
        const answer = await env.execute(ref, newMethodCommand(await env.token()));
        if (answer.kind === 'refused') refused.push(answer.code);
        continue;
      }
      try {
        await shop.impatientMerchant.post(PATHS[command], { subscriptionId, ...fields });
      } catch (error) {
        if (!(error instanceof ApiRefusal)) throw error;
        // A declined manual retry is an answer, too.
        if (error.status !== 402) refused.push(error.errorCode);
      }
    }
  };
  for (const { at: date } of steps) {
    await executeUntil(date);
    // A step and a charge may come at one instant.
    for (const { cycleNumber } of steps.filter((step) => step.at === date)) {
      if (cycleNumber !== undefined) await declineCycle(cycleNumber);
    }
    await executeUntil(date + 1);
    await advanceTo(date);
  }
  await executeUntil(Infinity);
  await advanceTo(now + 400 * DAY);
  return { ref, refused };
}

const charged = ({ data }: Simulated) =>
  data.flatMap(({ at, cycleNumber, attempt, amount, errorCode, cause }) =>
    cycleNumber === undefined
      ? []
      : [[at, cycleNumber, attempt, amount, errorCode, causeOf(String(cause))]],
  );

/** Without the command's id, which differs. */
const causeOf = (text: string) => text.replace(/command \S+/, 'command');

/** Returns the simulated steps. */
async function expectSimulated(env: TestEnvironment, shop: Shop, script: Script): Promise<Step[]> {
  const { terms, outcomes, commands } = script;
  const body = { ...MONTHLY, ...terms, testClockId: await env.createClock(START) };
  const simulated = await shop.merchant.post<Simulated>('/subscription/simulate', {
    ...body,
    script: [...outcomes, ...commands],
  });
  const { ref, refused } = await live(env, shop, script, { body, steps: simulated.data });
  const path = (name: string) => `/subscription/${name}/${ref.subscriptionId}`;
  const { data: charges } = await shop.merchant.get<{ data: Record<string, unknown>[] }>(
    path('charges'),
  );
  expect(
    charges.map(({ createdAt, cycleNumber, attempt, amount, errorCode, cause }) => [
      Date.parse(String(createdAt)),
      cycleNumber,
      attempt,
      amount,
      errorCode,
      causeOf((cause as { text: string }).text),
    ]),
  ).toEqual(charged(simulated));
  const happened = simulated.data.filter(({ refusal }) => refusal === undefined);
  expect((await env.events(ref)).map((event) => event['eventType'])).toEqual(
    happened.flatMap(({ eventTypes }) => eventTypes),
  );
  const { data: timeline } = await shop.merchant.get<{ data: object[] }>(path('timeline'));
  expect(timeline).toEqual(
    happened.map(({ at, what, why }) => expect.objectContaining({ date: at, what, why }) as object),
  );
  expect(refused).toEqual(
    simulated.data.flatMap(({ refusal }) => (refusal ? [refusal.errorCode] : [])),
  );
  const state = await env.state(ref);
  expect({ status: state.status, currentPeriodEnd: state.currentPeriodEndAt }).toEqual({
    status: simulated.status,
    currentPeriodEnd: simulated.data.at(-1)?.currentPeriodEnd ?? null,
  });
  return simulated.data;
}

const inDays = (max: number) => fc.integer({ min: 1, max }).map((days) => START + days * DAY);

const commandOf: fc.Arbitrary<Command> = inDays(300).chain((at) =>
  fc.oneof(
    fc
      .record({ newAmount: fc.integer({ min: 150, max: 9_000 }) })
      .map((edit) => ({ at, command: 'edit' as const, ...edit })),
    fc
      .integer({ min: 1, max: 60 })
      .map((days) => ({ at, command: 'edit' as const, newNextPaymentDate: at + days * DAY })),
    fc
      .integer({ min: 1, max: 9 })
      .map((newCycleCount) => ({ at, command: 'edit' as const, newCycleCount })),
    fc.option(fc.integer({ min: 1, max: 60 })).map((days) => ({
      at,
      command: 'pause' as const,
      ...(days === null ? {} : { resumeAt: at + days * DAY }),
    })),
    fc
      .integer({ min: 1, max: 60 })
      .map((days) => ({ at, command: 'unpause' as const, newNextPaymentDate: at + days * DAY })),
    fc.boolean().map((atPeriodEnd) => ({ at, command: 'cancel' as const, atPeriodEnd })),
    fc
      .constantFrom('resume' as const, 'retry' as const, 'new_card' as const)
      .map((command) => ({ at, command })),
  ),
);

const adviceOf: fc.Arbitrary<Advice> = fc.oneof(
  { weight: 2, arbitrary: fc.constant({}) },
  fc.constantFrom({ advice: 'never' as const }, { advice: 'new_details_needed' as const }),
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(1, 24, 48, 240)
      .map((waitHours) => ({ advice: 'not_before' as const, waitHours })),
  },
);

const scriptOf: fc.Arbitrary<Script> = fc
  .record({
    cycleCount: fc.integer({ min: 2, max: 8 }),
    every: fc.constantFrom(
      { interval: 'MONTH', intervalCount: 1 },
      { interval: 'WEEK', intervalCount: 3 },
      { interval: 'DAY', intervalCount: 17 },
      { interval: 'MONTH', intervalCount: 2 },
    ),
    start: fc.constantFrom(
      {},
      { upfrontAmount: 500 },
      { trialPeriodCount: 10, trialPeriodInterval: 'DAY' },
    ),
    outcomes: fc.uniqueArray(
      fc
        .record({
          cycle: fc.integer({ min: 1, max: 8 }),
          outcome: fc.constantFrom('insufficient_funds', 'card_declined', 'lost_card'),
          times: fc.integer({ min: 1, max: 6 }),
          said: adviceOf,
        })
        .map(({ said, ...outcome }) => ({ ...outcome, ...said })),
      { maxLength: 3, selector: ({ cycle }) => cycle },
    ),
    commands: fc.uniqueArray(commandOf, { maxLength: 5, selector: ({ at }) => at }),
  })
  .map(({ cycleCount, every, start, outcomes, commands }) => ({
    terms: { cycleCount, ...every, ...start },
    outcomes,
    commands: commands.toSorted((a, b) => a.at - b.at),
  }));

describe('POST /subscription/simulate', () => {
  test.for([
    { card: 'usual limits', cardLimits: DEFAULT_CARD_LIMITS, seed: 20_261_126 },
    { card: 'low limits', cardLimits: { perDay: 2, per30Days: 4 }, seed: 20_261_129 },
  ])(
    'tells what then happens on a test clock, for random scripts and cards with $card [D-58, D-30]',
    { timeout: 3_600_000 },
    async ({ cardLimits, seed }, { env, shop }) => {
      await changeSettings(env.db, env.merchantId, { cardLimits });
      const scripts = fc.sample(scriptOf, { numRuns: SCRIPTS, seed });
      const lives = async (): Promise<void> => {
        for (let script = scripts.shift(); script; script = scripts.shift()) {
          await expectSimulated(env, shop, script).catch((error: unknown): never => {
            throw new Error(`of ${JSON.stringify(script)}`, { cause: error });
          });
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, lives));
    },
  );

  test('tells which notices are then given, with an edit and a pause before their charges [D-58, D-63]', async ({
    env,
    shop,
  }) => {
    const steps = await expectSimulated(env, shop, {
      terms: { interval: 'MONTH', intervalCount: 6, cycleCount: 4, amount: 12_000 },
      outcomes: [{ cycle: 3, outcome: 'insufficient_funds', times: 2 }],
      commands: [
        { at: START + 100 * DAY, command: 'edit', newAmount: 15_000 },
        { at: START + 165 * DAY, command: 'edit', newAmount: 16_000 },
        { at: START + 350 * DAY, command: 'pause', resumeAt: START + 420 * DAY },
      ],
    });
    const told = steps.filter(({ what }) => what.startsWith('notice'));
    expect(told.map(({ at, what, why }) => [new Date(at).toISOString(), what, why])).toEqual(
      [
        ['2027-06-21', 'renewal_upcoming', '150.00 USD on 2027-07-31'],
        ['2027-07-11', 'amount_changing', '150.00 USD on 2027-07-31'],
        ['2027-07-15', 'amount_changing', '160.00 USD on 2027-07-31'],
        ['2027-07-21', 'renewal_upcoming', '160.00 USD on 2027-07-31'],
        ['2027-12-22', 'renewal_upcoming', '160.00 USD on 2028-01-31'],
        ['2028-02-15', 'renewal_upcoming', '160.00 USD on 2028-03-26'],
        ['2028-03-16', 'renewal_upcoming', '160.00 USD on 2028-03-26'],
        ['2028-08-17', 'renewal_upcoming', '160.00 USD on 2028-09-26'],
        ['2028-09-16', 'renewal_upcoming', '160.00 USD on 2028-09-26'],
      ].map(([date, notice, charge]) => [
        `${date}T12:00:00.000Z`,
        `notice given: subscription.${notice}`,
        `next charge: ${charge}T12:00:00.000Z`,
      ]),
    );
  });

  test('writes no row', async ({ env, shop }) => {
    const { subscriptionId } = await shop.subscribe();
    await env.confirmStart({ merchantId: env.merchantId, subscriptionId });
    const before = await countRows(env.db);
    const { data, isComplete } = await shop.merchant.post<Simulated>('/subscription/simulate', {
      subscriptionId,
      script: [{ cycle: 2, outcome: 'lost_card' }],
    });
    expect(isComplete).toBe(true);
    expect(data.map(({ what }) => what)).toEqual([
      'cycle 1 paid, 19.99 USD',
      'cycle 2 declined (lost_card)',
    ]);
    expect(await countRows(env.db)).toEqual(before);
  });
});
