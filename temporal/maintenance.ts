import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { MAINTENANCE_WORKFLOW, maintenanceWorkflowId } from '../workflows/maintenance/messages.ts';
import type { Logger } from '../runtime/logger.ts';
import { ACCEPT_WITHIN_MS } from './client.ts';

const CHECK_EVERY_MS = 60_000;

export interface MaintenanceChecksDeps {
  client: Client;
  /** Workflows run on `<prefix>billing`. */
  taskQueuePrefix: string;
  logger: Pick<Logger, 'warn'>;
  /** Time between two checks. Default: 60,000 ms. */
  checkEveryMs?: number;
}

/**
 * Starts the maintenance workflow, which runs the sweeps, and checks it every minute. A check starts it
 * again if it was terminated. Several processes may do this: one workflow runs. Never throws: a failed
 * start is logged, and the next check tries again.
 *
 * The returned function ends the checks; the workflow continues. It resolves when no check is under
 * way, after 4.5 s at most. Close the connection only after that.
 */
export function keepMaintenanceRunning(deps: MaintenanceChecksDeps): () => Promise<void> {
  const { client, taskQueuePrefix, logger, checkEveryMs = CHECK_EVERY_MS } = deps;
  const ending = new AbortController();

  const start = async (): Promise<void> => {
    try {
      await client.withDeadline(Date.now() + ACCEPT_WITHIN_MS, () =>
        client.workflow.start(MAINTENANCE_WORKFLOW, {
          workflowId: maintenanceWorkflowId(taskQueuePrefix),
          taskQueue: `${taskQueuePrefix}billing`,
          workflowIdConflictPolicy: 'USE_EXISTING',
        }),
      );
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      logger.warn({ error: reason }, 'the maintenance workflow was not started');
    }
  };
  const checks = (async (): Promise<void> => {
    while (!ending.signal.aborted) {
      await start();
      await sleep(checkEveryMs, undefined, { signal: ending.signal }).catch(() => undefined);
    }
  })();
  return async () => {
    ending.abort();
    await checks;
  };
}
