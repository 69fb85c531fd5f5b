import { setTimeout as sleep } from 'node:timers/promises';
import { MONTHLY } from '../../scripts/client/monthly.ts';
import type { Payers } from './payers.ts';
import type { RetryingClient } from './retrying-client.ts';
import type { Random } from './random.ts';

const DAY_MS = 86_400_000;
/** Each further clock starts a day later, so some start on the 29th to 31st, which some months lack. */
const CLOCKS_START_AT = Date.UTC(2027, 0, 20, 12);

const CREATED_TOGETHER = 8;
/**
 * Every second subscription has no test clock, because a test clock shows a repeat after a crash the same instant. A
 * command moves its next payment to 1 to 10 s from now.
 */
const REAL_TIME_EVERY = 2;
const REAL_TIME_DATE_CHANCE = 0.5;
const TRIAL_CHANCE = 0.2;
/** Chance that the payer of an earlier subscription comes back, and pays with the saved card. */
const COMES_BACK_CHANCE = 0.4;

/** An advance lasts until the slowest subscription is done: similar intervals are charged about as often. */
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

/** Most subscriptions do not end during the run. */
const CYCLE_COUNTS = [5, 12, 1_200, 1_200, 1_200] as const;

export interface Load {
  readonly client: RetryingClient;
  readonly random: Random;
  readonly payers: Payers;
  /** True while no clock may advance, because more cycles were paid on test clocks than in real time. */
  areClocksAhead?: boolean;
  /** Waits until the next advance may start. Without it an advance starts at once. */
  readonly turn?: () => Promise<void>;
  made: number;
  paid: number;
  tooLate: number;
  commands: number;
  refunds: number;
}

/** The subscriptions of one test clock, or all subscriptions without a test clock. */
export interface Group {
  readonly testClockId: string | null;
  readonly subscriptionIds: string[];
  nowAt: number;
}

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
      : // The subscriptions are assigned to the clocks one after another, so that every clock has a subscription.
        (clocked[(index - Math.floor(index / REAL_TIME_EVERY)) % clocks] ?? inRealTime),
  );
  const makeNext = async (): Promise<void> => {
    for (let group = waiting.shift(); group !== undefined; group = waiting.shift()) {
      await make(load, group);
    }
  };
  await Promise.all(Array.from({ length: CREATED_TOGETHER }, makeNext));
  return groups;
}

/** Days of one advance. Short, because the end of the fault phase waits for every advance in progress. */
const ADVANCE_DAYS = [3, 21] as const;
/** More subscriptions of one clock advance by fewer days at once: an advance of thousands of cycles takes too long. */
const WHOLE_ADVANCE_OF = 10;
/** Range of the wait between two advances of a clock, in ms. */
const BETWEEN_ADVANCES = [500, 2_000] as const;
/** Range of the wait between two commands of a sequence, in ms. */
const BETWEEN_COMMANDS = [8_000, 35_000] as const;
const BETWEEN_REAL_TIME_COMMANDS = [2_000, 8_000] as const;
const UNTIL_BEHIND_MS = 500;
/** Chance of a new subscription after each command, to replace subscriptions that end. */
const NEW_CUSTOMER_CHANCE = 0.05;

export async function applyLoad(load: Load, group: Group, enough: AbortSignal): Promise<void> {
  // In real time nothing falls due without a command, and many commands wait for the outcome of a charge.
  const sequences = group.testClockId === null ? group.subscriptionIds.length : 1;
  await Promise.all([
    keepAdvancing(load, group, enough),
    ...Array.from({ length: sequences }, () => keepCommanding(load, group, enough)),
  ]);
}

async function keepAdvancing(load: Load, group: Group, enough: AbortSignal): Promise<void> {
  if (group.testClockId === null) return;
  while (!enough.aborted) {
    await load.turn?.();
    while (load.areClocksAhead && !enough.aborted) await rest(UNTIL_BEHIND_MS, enough);
    if (enough.aborted) return;
    await advance(load, group, load.random.between(...ADVANCE_DAYS));
    // If all subscriptions of a clock have ended, an advance takes no time. This wait limits the rate of such
    // advances.
    await rest(load.random.between(...BETWEEN_ADVANCES), enough);
  }
}

async function keepCommanding(load: Load, group: Group, enough: AbortSignal): Promise<void> {
  const { random } = load;
  const isOnClock = group.testClockId !== null;
  const [least, most] = isOnClock ? BETWEEN_COMMANDS : BETWEEN_REAL_TIME_COMMANDS;
  while (!enough.aborted) {
    const id = group.subscriptionIds[random.between(0, group.subscriptionIds.length - 1)];
    if (id !== undefined) {
      await Promise.all([command(load, group, id), load.payers.mayChangeCard(load.client, id)]);
    }
    if (random.isTrue(NEW_CUSTOMER_CHANCE)) await make(load, group);
    await rest(random.between(least, most), enough);
  }
}

async function rest(ms: number, enough: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: enough }).catch(() => undefined);
}

export async function advance(load: Load, group: Group, most: number): Promise<void> {
  if (group.testClockId === null) return;
  const share = Math.min(1, WHOLE_ADVANCE_OF / group.subscriptionIds.length);
  const days = Math.ceil(most * share);
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
    isOnClock && random.isTrue(TRIAL_CHANCE)
      ? { trialPeriodCount: random.between(1, 10), trialPeriodInterval: 'DAY' }
      : {};
  const customerId = await earlierCustomer(load, group);
  const { subscriptionId, fwdUrl } = await answerOf<{ subscriptionId: string; fwdUrl: string }>(
    load,
    '/subscription/create',
    {
      ...MONTHLY,
      // Every amount is different, so that a charge of a wrong subscription would be detected.
      amount: 1_000 + load.made,
      ...random.pick(INTERVALS),
      cycleCount: random.pick(CYCLE_COUNTS),
      ...trial,
      ...(isOnClock ? { testClockId: group.testClockId } : {}),
      ...(customerId === undefined ? {} : { customerId }),
    },
  );
  if ((await load.payers.payCheckout(fwdUrl)) === 'too late') {
    load.tooLate += 1;
    return;
  }
  load.paid += 1;
  group.subscriptionIds.push(subscriptionId);
}

async function earlierCustomer(
  { client, random }: Load,
  group: Group,
): Promise<string | undefined> {
  const ids = group.subscriptionIds;
  const id = ids[random.between(0, Math.max(0, ids.length - 1))];
  if (!random.isTrue(COMES_BACK_CHANCE) || id === undefined) return undefined;
  const answer = await client.get(`/subscription/get-subscription/${id}`);
  return (JSON.parse(answer?.body ?? '{}') as { customerId?: string }).customerId;
}

/** Most manual retries are refused, because few subscriptions are UNPAID, so they are the most frequent. */
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

async function command(load: Load, group: Group, subscriptionId: string): Promise<void> {
  const { random, client } = load;
  const amount = random.between(101, 90_000);
  const far = random.between(2, 40);
  // Without a clock the date is so near that the cycle falls due during the run.
  const date = group.testClockId === null ? Date.now() + far * 250 : group.nowAt + far * DAY_MS;
  const isDated = group.testClockId === null && random.isTrue(REAL_TIME_DATE_CHANCE);
  const [path, body] = isDated
    ? (['/subscription/edit', { newNextPaymentDate: date }] as const)
    : pickCommand(random, amount, date);
  load.commands += 1;
  const key = `${subscriptionId}:${load.commands}`;
  const answer = await client.post(path, { subscriptionId, ...body }, key);
  // Repeats the request, like a client that did not receive the answer.
  if (answer !== null && random.isTrue(0.3)) {
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
