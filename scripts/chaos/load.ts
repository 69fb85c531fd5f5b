import { setTimeout as sleep } from 'node:timers/promises';
import { PAYING_CARD } from '../../test/support/payer.ts';
import { payUntilAnswered } from '../client/insistent-payer.ts';
import { PATIENCE_MS } from './insistent-client.ts';
import type { InsistentClient } from './insistent-client.ts';
import type { Random } from './random.ts';

const DAY_MS = 86_400_000;
/** Some monthly dates do not exist in every month. */
const CLOCKS_START_AT = Date.UTC(2027, 0, 20, 12);

const BETWEEN_LOOKS_MS = 300;
/** Subscriptions of one clock that are being made at the same time. */
const MADE_TOGETHER = 8;
/** One subscription in ten lives in real time, where a cycle falls due when a command gave it a date. */
const REAL_TIME_EVERY = 10;
const TRIAL_CHANCE = 0.2;

/** Mostly short ones: a clock waits for the subscription with the most cycles. */
const INTERVALS = [
  { interval: 'DAY', intervalCount: 1 },
  { interval: 'DAY', intervalCount: 1 },
  { interval: 'DAY', intervalCount: 1 },
  { interval: 'DAY', intervalCount: 2 },
  { interval: 'DAY', intervalCount: 3 },
  { interval: 'WEEK', intervalCount: 1 },
  { interval: 'WEEK', intervalCount: 2 },
  { interval: 'MONTH', intervalCount: 1 },
] as const;

/** Some end during the run, most do not. */
const CYCLE_COUNTS = [5, 12, 1_200, 1_200, 1_200] as const;

export interface Load {
  readonly client: InsistentClient;
  readonly random: Random;
  made: number;
  paid: number;
  /** Checkouts that expired before they were paid. */
  tooLate: number;
  pagesRepeated: number;
  commands: number;
}

/** A group of subscriptions that live by one clock; without one, in real time. */
export interface Group {
  readonly testClockId: string | null;
  readonly subscriptionIds: string[];
  nowAt: number;
}

/** Makes all subscriptions and pays for them. */
export async function makeGroups(load: Load, count: number, clocks: number): Promise<Group[]> {
  const inRealTime: Group = { testClockId: null, subscriptionIds: [], nowAt: Date.now() };
  const groups: Group[] = [inRealTime];
  for (let clock = 0; clock < clocks; clock += 1) {
    const nowAt = CLOCKS_START_AT + clock * DAY_MS;
    const { testClockId } = await answerOf<{ testClockId: string }>(load, '/test-clock/create', {
      now: nowAt,
    });
    groups.push({ testClockId, subscriptionIds: [], nowAt });
  }
  const clocked = groups.slice(1);
  const waiting = Array.from({ length: count }, (_, index) =>
    index % REAL_TIME_EVERY === REAL_TIME_EVERY - 1
      ? inRealTime
      : // Each clock in turn: none is left without a subscription.
        (clocked[(index - Math.floor(index / REAL_TIME_EVERY)) % clocks] ?? inRealTime),
  );
  const makeNext = async (): Promise<void> => {
    for (let group = waiting.shift(); group !== undefined; group = waiting.shift()) {
      await make(load, group);
    }
  };
  await Promise.all(Array.from({ length: MADE_TOGETHER }, makeNext));
  return groups;
}

/** What was begun when enough is paid has to end: far moves make a run long at its end. */
const ADVANCE_DAYS = [3, 21] as const;
/** Between two moves of a clock, in ms. */
const BETWEEN_ADVANCES = [500, 2_000] as const;
/** How long a group's merchant does nothing between two commands, in ms. */
const BETWEEN_COMMANDS = [8_000, 35_000] as const;
/** With each command, so that subscriptions that end are replaced. */
const NEW_CUSTOMER_CHANCE = 0.05;

/** Sends the clock on and on, with commands and new customers at the same time, until `enough`. */
export async function live(load: Load, group: Group, enough: AbortSignal): Promise<void> {
  await Promise.all([advanceOn(load, group, enough), askOn(load, group, enough)]);
}

async function advanceOn(load: Load, group: Group, enough: AbortSignal): Promise<void> {
  if (group.testClockId === null) return;
  while (!enough.aborted) {
    await advance(load, group, load.random.between(...ADVANCE_DAYS));
    // One whose subscriptions have all ended is there at once.
    await rest(load.random.between(...BETWEEN_ADVANCES), enough);
  }
}

/** One after the other, each until it is answered. */
async function askOn(load: Load, group: Group, enough: AbortSignal): Promise<void> {
  const { random } = load;
  while (!enough.aborted) {
    const id = group.subscriptionIds[random.between(0, group.subscriptionIds.length - 1)];
    if (id !== undefined) await command(load, group, id);
    if (random.isLucky(NEW_CUSTOMER_CHANCE)) await make(load, group);
    await rest(random.between(...BETWEEN_COMMANDS), enough);
  }
}

/** So long, unless it is enough before. */
async function rest(ms: number, enough: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: enough }).catch(() => undefined);
}

export async function advance(load: Load, group: Group, days: number): Promise<void> {
  if (group.testClockId === null) return;
  const to = group.nowAt + days * DAY_MS;
  const { testClockId } = group;
  const key = `advance:${testClockId}:${to}`;
  await answerOf(load, '/test-clock/advance', { testClockId, to }, key);
  group.nowAt = to;
}

async function make(load: Load, group: Group): Promise<void> {
  const { random } = load;
  load.made += 1;
  const isOnClock = group.testClockId !== null;
  const trial =
    isOnClock && random.isLucky(TRIAL_CHANCE)
      ? { trialPeriodCount: random.between(1, 10), trialPeriodInterval: 'DAY' }
      : {};
  const { subscriptionId, fwdUrl } = await answerOf<{ subscriptionId: string; fwdUrl: string }>(
    load,
    '/subscription/create',
    {
      // All differ, so that no charge can pass for another's.
      amount: 1_000 + load.made,
      currency: 'USD',
      ...random.pick(INTERVALS),
      cycleCount: random.pick(CYCLE_COUNTS),
      ...trial,
      ...(isOnClock ? { testClockId: group.testClockId } : {}),
      customerDetails: { name: PAYING_CARD.name, email: 'ada@example.com' },
      callbackUrl: 'https://shop.example/thanks',
    },
  );
  if ((await payWithPatience(load, fwdUrl)) === 'too late') {
    load.tooLate += 1;
    return;
  }
  load.paid += 1;
  group.subscriptionIds.push(subscriptionId);
}

/** More of what is refused least often: a retry needs an unpaid subscription. */
function pickCommand(random: Random, amount: number, date: number): [path: string, body: object] {
  const dice = random.next();
  if (dice < 0.3) return ['/subscription/manual-retry', {}];
  if (dice < 0.5) return ['/subscription/edit', { newAmount: amount }];
  if (dice < 0.6) return ['/subscription/edit', { newNextPaymentDate: date }];
  if (dice < 0.8) return ['/subscription/merchant/one-time-charge', { amount, currency: 'USD' }];
  if (dice < 0.87) return ['/subscription/merchant/pause', {}];
  if (dice < 0.98) return ['/subscription/merchant/unpause', { newNextPaymentDate: date }];
  return ['/subscription/merchant/cancel', {}];
}

/** Whatever a merchant may ask of a subscription, refusals included. */
async function command(load: Load, group: Group, subscriptionId: string): Promise<void> {
  const { random, client } = load;
  const amount = random.between(101, 90_000);
  const far = random.between(2, 40);
  // In real time so soon that it falls due during the run.
  const date = group.testClockId === null ? Date.now() + far * 1_000 : group.nowAt + far * DAY_MS;
  const [path, body] = pickCommand(random, amount, date);
  load.commands += 1;
  const key = `${subscriptionId}:${load.commands}`;
  const answer = await client.post(path, { subscriptionId, ...body }, key);
  // What a client that did not hear the answer would do.
  if (answer !== null && random.isLucky(0.3)) {
    await client.post(path, { subscriptionId, ...body }, key);
  }
}

async function answerOf<Answer>(
  { client }: Load,
  path: string,
  body: object,
  key?: string,
): Promise<Answer> {
  const answer = await client.post(path, body, key);
  if (answer?.status !== 200) throw new Error(`${path}: ${answer?.status} ${answer?.body}`);
  return JSON.parse(answer.body) as Answer;
}

/** Too late when the clock passed the end of the checkout meanwhile. */
async function payWithPatience(load: Load, fwdUrl: string): Promise<'paid' | 'too late'> {
  const { end } = await payUntilAnswered(fwdUrl, {
    address: addressOf(load.random),
    withinMs: PATIENCE_MS,
    betweenLooksMs: BETWEEN_LOOKS_MS,
    reloadsBrokenPage: () => load.random.isLucky(0.5),
    onRepeat: () => (load.pagesRepeated += 1),
  });
  return end;
}

function addressOf(random: Random): string {
  return `10.${random.between(0, 255)}.${random.between(0, 255)}.${random.between(1, 254)}`;
}
