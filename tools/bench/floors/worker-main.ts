// The worker of the baseline workflows, in a separate process. The process has two arguments: Temporal's
// address and namespace. The worker's options are fixed here, so a baseline does not change with the
// product's worker.

import { fileURLToPath } from 'node:url';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import type { WorkerOptions } from '@temporalio/worker';
import { announceReady, onShutdown } from '../../../runtime/shutdown.ts';
import { tellParent } from '../stack/child-process.ts';
import { CHARGES_QUEUE, WEBHOOKS_QUEUE, WORKFLOW_QUEUE } from './queues.ts';

/** Enough slots and cache for all due workflows, so that no workflow task times out before it starts. */
const WORKFLOW_TASKS = {
  maxConcurrentWorkflowTaskExecutions: 40,
  maxConcurrentWorkflowTaskPolls: 10,
  stickyQueueScheduleToStartTimeout: '60s',
  maxCachedWorkflows: 5_000,
} as const;

const [, , address = '', namespace = ''] = process.argv;

Runtime.install({ logger: new DefaultLogger('ERROR'), shutdownSignals: [] });
const connection = await NativeConnection.connect({ address });
const workers = await Promise.all(
  [WORKFLOW_QUEUE, CHARGES_QUEUE, WEBHOOKS_QUEUE].map((queue) => Worker.create(optionsOf(queue))),
);
const running = Promise.all(workers.map((worker) => worker.run()));
onShutdown(
  [
    {
      name: 'workers',
      close: async () => {
        for (const worker of workers) worker.shutdown();
        await running;
      },
    },
    { name: 'connection', close: () => connection.close() },
  ],
  { logger: { info: () => undefined, error: () => undefined } },
);
announceReady();

function optionsOf(taskQueue: string): WorkerOptions {
  const activities = { nothing: async () => tellParent({ queue: taskQueue }) };
  const shared: WorkerOptions = { connection, namespace, taskQueue, activities };
  if (taskQueue !== WORKFLOW_QUEUE) return shared;
  const workflowsPath = fileURLToPath(new URL('workflows.ts', import.meta.url));
  return { ...shared, ...WORKFLOW_TASKS, workflowsPath };
}
