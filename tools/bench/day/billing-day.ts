import { setTimeout as sleep } from 'node:timers/promises';
import { waitFor } from '../../scripts/client/wait-for.ts';
import { measureFloor } from '../floors/run.ts';
import { divided, readCounters, workBetween } from '../measure/database-counters.ts';
import { cpuPercentOver, waitUntilQuiet } from '../measure/quiet.ts';
import { startMeasuredStack } from '../stack/measured-stack.ts';
import type { ClientOf, MeasuredStack, TemporalKind } from '../stack/measured-stack.ts';
import type { OwnRun } from '../stack/own-run.ts';
import { startReceiver } from '../stack/receiver.ts';
import { startBackgroundLoad } from './background-load.ts';
import type { LoadFigures } from './background-load.ts';
import { settledDeliveries } from './healthy-merchant.ts';
import type { HealthyDeliveries } from './healthy-merchant.ts';
import { cloneSubscriptions } from './clones.ts';
import { emptyCache, EMPTIED_WITHIN_MS, slowDown } from './conditions.ts';
import { createAll, editAll, moveToOneInstant, payAll } from './set-up.ts';
import type { Throughput } from './set-up.ts';
import { CHARGED, measureWave, PREPARED_WITHIN_MS, WAVE_PATH } from './wave.ts';
import type { WaveFigures, WaveSetting } from './wave.ts';

export interface DayOptions {
  readonly subscriptions: number;
  readonly months: number;
  /** Number of subscriptions that fall due alone, before the months, as a reference. */
  readonly reference?: number;
  /** If true, no run is in the worker's cache when a month's renewals fall due. */
  readonly cold: boolean;
  /** If true, a busy loop runs on each core during the months. */
  readonly slow: boolean;
  readonly temporal: TemporalKind;
  readonly floor: number;
}

type Wave = WaveFigures & { readonly edit: Throughput };

export type DayFigures = Awaited<ReturnType<typeof runBillingDay>>;

/** The background load during the last wave, of the merchant whose subscriptions fall due and of another merchant. */
interface DuringWave {
  readonly same: LoadFigures;
  readonly other: LoadFigures & HealthyDeliveries;
}

/** More subscriptions are copies of one of these. */
const PAID_BY_PAYERS = 500;
/** Number of other subscriptions with which a restarted worker warms up. */
const WARM_UP = 150;
const OTHER_PATH = '/other-merchant';
const OTHER_EVENTS = ['subscription.created', CHARGED];
const DELIVERED_WITHIN_MS = 120_000;
const IDLE_MS = 10_000;
/** 20,000 copies need minutes to start and to fall asleep. */
const QUIET_WITHIN_MS = 600_000;

export async function runBillingDay(options: DayOptions, { dataDir, closers, say }: OwnRun) {
  say(`starting a separate stack (Temporal: ${options.temporal})`);
  const stack = await startMeasuredStack(dataDir, options.temporal, closers);
  const receiver = await startReceiver(closers);
  const other = await stack.addMerchant('Another merchant');
  await receiver.subscribe(stack.merchant(), WAVE_PATH, [CHARGED, 'intent.failed']);
  const otherConfigId = await receiver.subscribe(other(), OTHER_PATH, OTHER_EVENTS);

  const paid = Math.min(options.subscriptions, PAID_BY_PAYERS);
  say(`creating ${paid} subscriptions, then paying them on the hosted page`);
  const { created, throughput: create } = await createAll(stack, paid);
  const pay = await payAll(stack, created);
  await waitUntilDelivered(stack);
  const subscriptionIds = created.map(({ subscriptionId }) => subscriptionId);
  const originals = [...subscriptionIds];
  if (options.subscriptions > paid) {
    const copied = options.subscriptions - paid;
    say(`copying their rows ${copied} times`);
    const copies = await cloneSubscriptions(stack, originals, copied);
    subscriptionIds.push(...copies);
  }

  say('measuring the idle stack');
  await waitUntilQuiet(stack, null, QUIET_WITHIN_MS);
  const idle = await measureIdle(stack);
  const setting: WaveSetting = { stack, receiver, idle, subscriptionIds };
  const others = options.cold ? await cloneSubscriptions(stack, originals, WARM_UP) : [];
  const reference =
    options.reference === undefined
      ? null
      : await measureOne(
          { ...setting, subscriptionIds: subscriptionIds.slice(0, options.reference) },
          { name: `${options.reference} warm`, perSecond: pay.perSecond, warmUp: null },
          say,
        );
  const { waves, duringWave } = await measureMonths(
    setting,
    { ...options, warmUp: options.cold ? others : null },
    reference?.edit ?? pay,
    { clientOf: other, configId: otherConfigId },
    say,
  );

  const repairs = await readRepairs(stack);
  say(`measuring the baseline: ${options.floor} workflows`);
  const floor = await measureFloor(stack, options.floor, closers);
  return {
    setUp: { create, pay },
    idle,
    reference,
    waves,
    duringWave,
    floor,
    /** By the maintenance sweeps until the end of the last wave, by kind. Empty in a healthy run. */
    repairs,
    problems: problemsOf(waves, duringWave, options.subscriptions),
  };
}

async function measureMonths(
  setting: WaveSetting,
  { months, slow, warmUp }: DayOptions & Pick<OneWave, 'warmUp'>,
  paid: Throughput,
  other: { readonly clientOf: ClientOf; readonly configId: string },
  say: OwnRun['say'],
) {
  const { stack, receiver } = setting;
  const waves: Wave[] = [];
  let duringWave = null as DuringWave | null;
  for (let month = 1; month <= months; month += 1) {
    const hasCalls = month > 1 && month === months;
    const perSecond = waves.at(-1)?.edit.perSecond ?? paid.perSecond;
    const startLoad = (dueAt: number) => {
      const endSlowness = slow ? slowDown() : () => undefined;
      if (!hasCalls) return async () => endSlowness();
      const loads = [
        startBackgroundLoad(stack.merchant, setting.subscriptionIds),
        startBackgroundLoad(other.clientOf),
      ] as const;
      return async () => {
        const [same, others] = await Promise.all(loads.map((load) => load.end()));
        endSlowness();
        if (same === undefined || others === undefined) return;
        const { configId } = other;
        const since = dueAt - 1_000;
        const delivered = await settledDeliveries(stack, receiver, OTHER_PATH, configId, since);
        duringWave = { same, other: { ...others, ...delivered } };
      };
    };
    waves.push(
      await measureOne(setting, { name: `month ${month}`, perSecond, warmUp, startLoad }, say),
    );
  }
  return { waves, duringWave };
}

interface OneWave {
  readonly name: string;
  /** The rate of earlier calls, which foretells the time of the edits. */
  readonly perSecond: number;
  /** Null: the runs stay in the worker's cache. Else other subscriptions, with which the restarted worker warms up. */
  readonly warmUp: readonly string[] | null;
  readonly startLoad?: (dueAt: number) => () => Promise<void>;
}

async function measureOne(
  setting: WaveSetting,
  { name, perSecond, warmUp, startLoad }: OneWave,
  say: OwnRun['say'],
): Promise<Wave> {
  const { stack, subscriptionIds } = setting;
  const count = subscriptionIds.length;
  say(`${name}: moving ${count} subscriptions to one due time`);
  const restMs = PREPARED_WITHIN_MS + (warmUp === null ? 0 : EMPTIED_WITHIN_MS);
  const { dueAt, result: edit } = await moveToOneInstant({ count, perSecond, restMs }, (at) =>
    editAll(stack, subscriptionIds, at),
  );
  if (warmUp !== null) await emptyCache(stack, warmUp);
  say(`${name}: all fall due at ${new Date(dueAt).toISOString()}`);
  const wave = await measureWave(
    setting,
    dueAt,
    () => startLoad?.(dueAt) ?? (async () => undefined),
  );
  say(`${name}: ${wave.charged} charged, ${wave.delivered} delivered`);
  return { ...wave, edit };
}

async function waitUntilDelivered({ sql }: MeasuredStack): Promise<void> {
  await waitFor('the events of the set-up to be delivered', DELIVERED_WITHIN_MS, async () => {
    const [row] = await sql<{ pending: number }[]>`
      select count(*)::int as pending from webhook_delivery where state = 'PENDING'`;
    if (row?.pending === 0) return true;
    await sleep(500);
  });
}

async function readRepairs({ sql }: MeasuredStack): Promise<Record<string, number>> {
  const rows = await sql<{ kind: string; repaired: string }[]>`
    select kind, repaired from sweep_count where repaired > 0 order by kind`;
  return Object.fromEntries(rows.map(({ kind, repaired }) => [kind, Number(repaired)]));
}

async function measureIdle(stack: MeasuredStack) {
  const before = await readCounters(stack, 'afterReports');
  const cpu = await cpuPercentOver(stack, IDLE_MS);
  const after = await readCounters(stack, 'afterReports');
  const seconds = (after.at - before.at) / 1_000;
  return { cpu, databasePerSecond: divided(workBetween(before, after, null), seconds) };
}

function problemsOf(
  waves: readonly WaveFigures[],
  duringWave: DuringWave | null,
  count: number,
): string[] {
  const ofWaves = waves.flatMap((wave, index) => {
    const found = {
      'not charged': count - wave.charged,
      'charged more than once': wave.chargedTwice,
      'without a delivered event': count - wave.delivered,
      'events not delivered': wave.undeliveredEvents,
      'not asleep again': wave.notAsleep,
    };
    return Object.entries(found).flatMap(([what, n]) =>
      n === 0 ? [] : [`month ${index + 1}: ${n} ${what}`],
    );
  });
  if (duringWave === null) return ofWaves;
  const { same, other } = duringWave;
  const ofOther =
    other.undelivered === 0 ? [] : [`another merchant: ${other.undelivered} events not delivered`];
  return [...ofWaves, ...ofOther, ...same.failures, ...other.failures];
}
