import { setTimeout as sleep } from 'node:timers/promises';
import { waitFor } from '../../scripts/client/wait-for.ts';
import { countCpu, residentMb } from '../measure/cpu.ts';
import { divided, readCounters, workBetween } from '../measure/database-counters.ts';
import type { DatabaseWork } from '../measure/database-counters.ts';
import { historiesOf } from '../measure/histories.ts';
import type { RunPosition } from '../measure/histories.ts';
import { inParallel } from '../measure/parallel.ts';
import { distributionOf } from '../measure/percentiles.ts';
import type { Distribution } from '../measure/percentiles.ts';
import { waitUntilQuiet } from '../measure/quiet.ts';
import type { CpuPercent } from '../measure/quiet.ts';
import { PROCESSES } from '../stack/measured-stack.ts';
import type { MeasuredStack, ProcessName } from '../stack/measured-stack.ts';
import type { Receiver } from '../stack/receiver.ts';
import { subscriptionWorkflowId } from '../../../workflows/subscription/messages.ts';
import { countOpen, readDeliveries, readPlaces, readRenewals } from './renewals.ts';
import type { Deliveries, Renewal } from './renewals.ts';

export type CpuParts = Record<ProcessName | 'receiver' | 'bench', number>;

/** Results of a wave: all subscriptions fall due at one time. */
export type WaveFigures = Awaited<ReturnType<typeof measureWave>>;

export interface WaveSetting {
  readonly stack: MeasuredStack;
  readonly receiver: Receiver;
  readonly subscriptionIds: readonly string[];
  readonly idle: { readonly cpu: CpuPercent; readonly databasePerSecond: DatabaseWork };
}

/** The receiver's path for the events of the measured merchant. */
export const WAVE_PATH = '/billing-day';
export const CHARGED = 'subscription.cycle_charged';

/** Time in ms that {@link prepareWave} needs before the due time. */
export const PREPARED_WITHIN_MS = 16_000;
/** Postgres' counters are read this time in ms before the due time. */
const COUNTED_BEFORE_MS = 2_000;
const QUIET_WITHIN_MS = 3_000;
const QUIET_AFTER_WITHIN_MS = 20_000;
const LOOK_MS = 250;
const WAVE_WITHIN_MS = 120_000;
const WAVE_WITHIN_MS_EACH = 500;
const ASLEEP_WITHIN_MS = 60_000;
const SAMPLE = 100;
const CONCURRENT_READS = 8;

/** Waits at most 3 s for the edits' load to end, then reads a sample of histories, and counters 2 s before `dueAt`. */
async function prepareWave({ stack, subscriptionIds, idle }: WaveSetting, dueAt: number) {
  await waitUntilQuiet(stack, idle.cpu, QUIET_WITHIN_MS);
  const histories = historiesOf(stack);
  const sample = sampleOf(subscriptionIds);
  const positions = await inParallel(sample, CONCURRENT_READS, async (id) => ({
    id,
    position: await histories.position(subscriptionWorkflowId(id)),
  }));
  const places = await readPlaces(stack, subscriptionIds);
  await sleep(Math.max(0, dueAt - Date.now() - COUNTED_BEFORE_MS));
  return { positions, places, counters: await readCounters(stack, 'now') };
}

export async function measureWave(
  setting: WaveSetting,
  dueAt: number,
  whileDue: () => () => Promise<void>,
) {
  const { stack, receiver, subscriptionIds } = setting;
  const { positions, places, counters } = await prepareWave(setting, dueAt);
  await sleep(Math.max(0, dueAt - Date.now() - 500));
  const cpuMsFor = countCpu(
    new Map<ProcessName | 'receiver', number>([...stack.pids(), ['receiver', receiver.pid]]),
  );
  const measuredFrom = performance.now();
  const endLoad = whileDue();
  await waitForWave(setting, dueAt);
  await endLoad();
  await waitUntilQuiet(stack, setting.idle.cpu, QUIET_AFTER_WITHIN_MS);
  const n = subscriptionIds.length;
  const idleShare = (performance.now() - measuredFrom) / 100 / n;
  const cpuMs = withoutIdle(cpuMsFor(n), setting.idle.cpu, idleShare);
  const database = workBetween(
    counters,
    await readCounters(stack, 'afterReports'),
    setting.idle.databasePerSecond,
  );
  return {
    ...(await readWave(setting, dueAt, places)),
    /** Of one renewal, averaged over all renewals of a wave; `historyEvents` over a sample of them. */
    cost: {
      /** CPU ms of each process, minus those of the idle stack in the same time. */
      cpuMs,
      ...(await historyCost(setting, positions)),
      /** Resident memory of the worker in MB when the wave is over. */
      workerMb: residentMb(stack.pids().get('worker')),
      /** WAL bytes, and the commits minus those of the idle stack in the same time. */
      database: divided(database, n),
    },
  };
}

/** Subtracts the CPU of the idle stack. `share`: per cent of a core in the measured time, as ms a renewal. */
function withoutIdle(cpuMs: CpuParts, idle: CpuPercent, share: number) {
  const rest = PROCESSES.map((name) => [name, cpuMs[name] - idle[name] * share]);
  return { ...cpuMs, ...(Object.fromEntries(rest) as CpuPercent) };
}

/** At the time limit returns without an error: the caller counts the renewals that are not finished. */
async function waitForWave(setting: WaveSetting, dueAt: number): Promise<void> {
  const { stack, receiver, subscriptionIds } = setting;
  const n = subscriptionIds.length;
  const giveUpAt = dueAt + WAVE_WITHIN_MS + n * WAVE_WITHIN_MS_EACH;
  const untilTrue = async (isOver: () => Promise<boolean>): Promise<void> => {
    while (Date.now() < giveUpAt && !(await isOver())) await sleep(LOOK_MS);
  };
  // Polls the receiver first, because polling the database would add to the measured load.
  await untilTrue(async () => {
    const charged = receiver.arrivals({ path: WAVE_PATH, since: dueAt, eventType: CHARGED });
    return new Set(charged.map(({ subscriptionId }) => subscriptionId)).size >= n;
  });
  await untilTrue(async () => {
    const { unsettled, undelivered } = await countOpen(stack, subscriptionIds, dueAt);
    return unsettled + undelivered === 0;
  });
}

async function readWave(setting: WaveSetting, dueAt: number, places: ReadonlyMap<string, number>) {
  const { stack, receiver, subscriptionIds } = setting;
  const n = subscriptionIds.length;
  const arrivals = receiver.arrivals({ path: WAVE_PATH, since: dueAt });
  const charged = arrivals.filter(({ eventType }) => eventType === CHARGED);
  const renewals = await readRenewals(stack, subscriptionIds, dueAt, charged);
  const deliveries = await readDeliveries(
    stack,
    { streamIds: subscriptionIds },
    dueAt - 1_000,
    arrivals,
  );
  const asleep = await asleepTimes(setting);
  const settledSeconds = lastOf(
    renewals.map(({ settledAt }) => settledAt),
    dueAt,
  );
  const asleepSeconds = Math.max(
    settledSeconds,
    lastOf([...renewals.map(({ deliveredAt }) => deliveredAt), deliveries.lastRecordedAt], dueAt),
    lastOf(asleep, dueAt),
  );
  return {
    charged: renewals.filter(isCharged).length,
    delivered: renewals.filter(({ deliveredAt }) => deliveredAt !== null).length,
    chargedTwice: renewals.filter(({ charges }) => charges > 1).length,
    undeliveredEvents: deliveries.undelivered,
    notAsleep: asleep.filter((at) => at === null).length,
    /** The renewals divided by the seconds until the last charge is settled. */
    chargesPerSecond: n / settledSeconds,
    /** The same until also all events are delivered and all workflows asleep. */
    asleepPerSecond: n / asleepSeconds,
    ...spread(renewals, deliveries, dueAt, places),
    deliveriesPerRenewal: deliveries.events / n,
  };
}

function spread(
  renewals: readonly Renewal[],
  deliveries: Deliveries,
  dueAt: number,
  places: ReadonlyMap<string, number>,
) {
  const settledAfter = (fromAt: (renewal: Renewal) => number): Distribution =>
    distributionOf(
      renewals.flatMap((renewal) =>
        renewal.settledAt === null ? [] : [(renewal.settledAt - fromAt(renewal)) / 1_000],
      ),
    );
  return {
    /** Settled, in seconds after the due time. */
    lateness: settledAfter(() => dueAt),
    /** Settled, in seconds after the due time plus the renewal's jitter. */
    latenessAfterPlace: settledAfter(({ subscriptionId }) => places.get(subscriptionId) ?? dueAt),
    firstDeliveryMs: distributionOf(deliveries.firstDeliveryMs),
  };
}

/** Time of each workflow's last event, in epoch ms. Null for a workflow that is not asleep after 60 s. */
async function asleepTimes({ stack, subscriptionIds }: WaveSetting): Promise<(number | null)[]> {
  const histories = historiesOf(stack);
  const giveUpAt = performance.now() + ASLEEP_WITHIN_MS;
  return inParallel(subscriptionIds, CONCURRENT_READS, async (id) => {
    const withinMs = Math.max(0, giveUpAt - performance.now());
    const find = async (): Promise<true | undefined> =>
      (await histories.position(subscriptionWorkflowId(id))).isAsleep ? true : undefined;
    const isAsleep = await waitFor(`${id} to sleep`, withinMs, find).catch(() => false);
    return isAsleep ? (await histories.lastEvent(subscriptionWorkflowId(id))).at : null;
  });
}

async function historyCost(
  { stack }: WaveSetting,
  positions: readonly { readonly id: string; readonly position: RunPosition }[],
) {
  const histories = historiesOf(stack);
  const added = await inParallel(positions, CONCURRENT_READS, async ({ id, position }) => ({
    events: await histories.eventsSince(subscriptionWorkflowId(id), position),
    repeated: await histories.repeatedTasksSince(subscriptionWorkflowId(id), position),
  }));
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  return {
    historyEvents: mean(added.map(({ events }) => events)),
    /** Workflow tasks that timed out or failed, and were executed again. */
    repeatedTasks: mean(added.map(({ repeated }) => repeated)),
  };
}

const isCharged = ({ settledAt, charges }: Renewal): boolean => settledAt !== null && charges > 0;

function lastOf(times: readonly (number | null)[], dueAt: number): number {
  const known = times.filter((at) => at !== null);
  return known.length === 0 ? Number.NaN : (Math.max(...known) - dueAt) / 1_000;
}

function sampleOf(subscriptionIds: readonly string[]): string[] {
  const step = Math.max(1, Math.floor(subscriptionIds.length / SAMPLE));
  return subscriptionIds.filter((_, index) => index % step === 0).slice(0, SAMPLE);
}
