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

const QUEUE = 'floor';

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

/** The speed and cost of Temporal and an SDK worker for `count` workflows that fall due at once and whose activity does nothing. */
export async function measureFloor(stack: MeasuredStack, count: number, closers: Closers) {
  const { temporalAddress, temporalNamespace } = stack.demo;
  let done = 0;
  const args = [temporalAddress, temporalNamespace, QUEUE];
  const worker = await startChild('tools/bench/floors/worker-main.ts', args, closers, () => {
    done += 1;
  });
  const client = new Client({
    connection: stack.temporal,
    namespace: stack.demo.temporalNamespace,
  });
  const idsOf = (kind: string, n: number): string[] =>
    Array.from({ length: n }, (_, index) => `floor/${kind}/${index}`);
  const startAll = async (ids: readonly string[], dueAt: number): Promise<number> => {
    const startedAt = performance.now();
    await inParallel(ids, CONCURRENT_STARTS, (workflowId) =>
      client.workflow.start('renewals', { workflowId, taskQueue: QUEUE, args: [dueAt] }),
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
    `${count} baseline workflows to finish their renewal`,
    WAVE_WITHIN_MS + count * WAVE_WITHIN_MS_EACH,
    async () => {
      await sleep(100);
      return done >= count ? true : undefined;
    },
  );
  await sleep(1_000);
  const cpuMsPerRenewal = cpuMsFor(count);
  const histories = historiesOf(stack);
  const asleepAt = await inParallel(ids, CONCURRENT_READS, (id) =>
    sleptAgainAt(histories, id, dueAt),
  );
  await worker.stop();
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
