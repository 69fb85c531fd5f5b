import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@temporalio/client';
import { waitFor } from '../../scripts/client/wait-for.ts';
import type { Closers } from '../stack/child-process.ts';
import { countCpu } from '../measure/cpu.ts';
import { historiesOf } from '../measure/histories.ts';
import type { Histories } from '../measure/histories.ts';
import { inParallel } from '../measure/parallel.ts';
import { startChild } from '../stack/child-process.ts';
import type { MeasuredStack } from '../stack/measured-stack.ts';
import { WEBHOOKS_QUEUE, WORKFLOW_QUEUE } from './queues.ts';

/** The shapes of a baseline renewal, named as workflow types, each with the task queue of its last activity. */
const SHAPES = {
  twoActivitiesAndNewRun: WEBHOOKS_QUEUE,
  oneLocalActivity: WORKFLOW_QUEUE,
} as const;
export type Shape = keyof typeof SHAPES;

/** A baseline: the speed and cost of Temporal and an SDK worker for workflows whose activities do nothing. */
export type Floor = Awaited<ReturnType<typeof measureFloor>>;

const CONCURRENT_STARTS = 16;
const CONCURRENT_READS = 8;
const REST_MS = 3_000;
/** Number of workflows that are started first and never fall due, to measure how long a start takes. */
const PROBES = 32;
const NEVER_DUE_MS = 30 * 86_400_000;
const START_ALLOWANCE = 2;
const WAVE_WITHIN_MS = 120_000;
const WAVE_WITHIN_MS_EACH = 500;
const ASLEEP_WITHIN_MS = 60_000;

/** Runs `count` workflows of each shape, one shape after another. Those of one shape fall due at once. */
export async function measureFloors(
  stack: MeasuredStack,
  count: number,
  closers: Closers,
): Promise<Record<Shape, Floor>> {
  const { temporalAddress, temporalNamespace } = stack.demo;
  const done = new Map<string, number>();
  const child = await startChild(
    'tools/bench/floors/worker-main.ts',
    [temporalAddress, temporalNamespace],
    closers,
    (message) => {
      const { queue } = message as { queue: string };
      done.set(queue, (done.get(queue) ?? 0) + 1);
    },
  );
  const worker = { pid: child.pid, done: (queue: string) => done.get(queue) ?? 0 };
  try {
    return {
      twoActivitiesAndNewRun: await measureFloor(stack, worker, 'twoActivitiesAndNewRun', count),
      oneLocalActivity: await measureFloor(stack, worker, 'oneLocalActivity', count),
    };
  } finally {
    await child.stop();
  }
}

async function measureFloor(
  stack: MeasuredStack,
  worker: { readonly pid: number; done(queue: string): number },
  shape: Shape,
  count: number,
) {
  const client = new Client({
    connection: stack.temporal,
    namespace: stack.demo.temporalNamespace,
  });
  const idsOf = (kind: string, n: number): string[] =>
    Array.from({ length: n }, (_, index) => `floor/${shape}/${kind}/${index}`);
  const startAll = async (ids: readonly string[], dueAt: number): Promise<number> => {
    const startedAt = performance.now();
    await inParallel(ids, CONCURRENT_STARTS, (workflowId) =>
      client.workflow.start(shape, { workflowId, taskQueue: WORKFLOW_QUEUE, args: [dueAt] }),
    );
    return performance.now() - startedAt;
  };
  const probeMs = await startAll(idsOf('probe', PROBES), Date.now() + NEVER_DUE_MS);
  const ids = idsOf('due', count);
  const dueAt = Math.round(Date.now() + REST_MS + (probeMs / PROBES) * count * START_ALLOWANCE);
  await startAll(ids, dueAt);
  const leftMs = dueAt - Date.now() - 500;
  if (leftMs < 0) throw new Error(`${count} baseline workflows could not be started in time`);
  await sleep(leftMs);

  const roots = new Map([['worker', worker.pid] as const, ...serversOf(stack)]);
  const cpuMsFor = countCpu(roots);
  await waitFor(
    `${count} baseline workflows (${shape}) to finish their renewal`,
    WAVE_WITHIN_MS + count * WAVE_WITHIN_MS_EACH,
    async () => {
      await sleep(100);
      return worker.done(SHAPES[shape]) >= count ? true : undefined;
    },
  );
  await sleep(1_000);
  const cpuMsPerRenewal = cpuMsFor(count);
  const histories = historiesOf(stack);
  const asleepAt = await inParallel(ids, CONCURRENT_READS, (id) =>
    sleptAgainAt(histories, id, dueAt),
  );
  const seconds = (Math.max(...asleepAt) - dueAt) / 1_000;
  return {
    /** Workflows divided by the seconds from the common due time until the last one sleeps again. */
    asleepPerSecond: count / seconds,
    cpuMsPerRenewal,
  };
}

function serversOf(stack: MeasuredStack): ['temporal' | 'postgres', number][] {
  const pids = stack.pids();
  return (['temporal', 'postgres'] as const).map((name) => [name, pids.get(name) ?? 0]);
}

/** Time at which the workflow started its next timer, in epoch ms by Temporal's clock. */
async function sleptAgainAt(histories: Histories, id: string, dueAt: number): Promise<number> {
  return waitFor(`${id} to sleep again`, ASLEEP_WITHIN_MS, async () => {
    const { type, at } = await histories.lastEvent(id);
    return type.endsWith('TIMER_STARTED') && at > dueAt ? at : undefined;
  });
}
