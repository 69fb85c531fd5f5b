import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { MAINTENANCE_WORKFLOW, maintenanceWorkflowId } from '../workflows/maintenance/messages.ts';
import type { Logger } from '../runtime/logger.ts';
import { accepted } from './client.ts';

const CHECK_EVERY_MS = 60_000;

export interface MaintenanceChecksDeps {
  client: Client;
  /** Workflows run on `<prefix>billing`. */
  taskQueuePrefix: string;
  logger: Pick<Logger, 'warn'>;
  /** Time between two checks, in ms. Default: 60,000. */
  checkEveryMs?: number;
}

/**
 * Starts the maintenance workflow, which runs the sweeps. Checks every minute that the workflow runs, and
 * starts it again if it does not. If several processes call this function, still only one workflow runs.
 * Never throws: a failed start is logged, and the next check tries again.
 *
 * Returns a function that ends the checks but not the workflow. The returned promise resolves when no check
 * is running, within 4.5 s. The caller must not close the connection before that.
 */
export function keepMaintenanceRunning(deps: MaintenanceChecksDeps): () => Promise<void> {
  const { client, taskQueuePrefix, logger, checkEveryMs = CHECK_EVERY_MS } = deps;
  const ending = new AbortController();

  const start = async (): Promise<void> => {
    try {
      await accepted(client, () =>
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
