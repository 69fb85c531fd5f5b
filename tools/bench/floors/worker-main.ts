// The worker of the baseline workflows, in a separate process. Its arguments are Temporal's address
// and namespace, and the task queue. The worker's options are fixed here, so a baseline does not change with the
// product's worker.

import { fileURLToPath } from 'node:url';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { announceReady, onShutdown } from '../../../runtime/shutdown.ts';
import { tellParent } from '../stack/child-process.ts';

/** Enough slots and cache for all due workflows, so that no workflow task times out before it starts. */
const WORKFLOW_TASKS = {
  maxConcurrentWorkflowTaskExecutions: 40,
  maxConcurrentWorkflowTaskPolls: 10,
  stickyQueueScheduleToStartTimeout: '60s',
  maxCachedWorkflows: 5_000,
} as const;

const [, , address = '', namespace = '', taskQueue = ''] = process.argv;

Runtime.install({ logger: new DefaultLogger('ERROR'), shutdownSignals: [] });
const connection = await NativeConnection.connect({ address });
const worker = await Worker.create({
  connection,
  namespace,
  taskQueue,
  activities: { nothing: async () => tellParent({}) },
  workflowsPath: fileURLToPath(new URL('workflows.ts', import.meta.url)),
  ...WORKFLOW_TASKS,
});
const running = worker.run();
onShutdown(
  [
    {
      name: 'worker',
      close: async () => {
        worker.shutdown();
        await running;
      },
    },
    { name: 'connection', close: () => connection.close() },
  ],
  { logger: { info: () => undefined, error: () => undefined } },
);
announceReady();
