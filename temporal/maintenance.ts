import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { MAINTENANCE_WORKFLOW, maintenanceWorkflowId } from '../workflows/maintenance/messages.ts';
import type { Logger } from '../runtime/logger.ts';
import { accepted } from './client.ts';

const CHECK_EVERY_MS = 60_000;

export interface MaintenanceChecksDeps {
  client: Client;
  taskQueuePrefix: string;
  logger: Pick<Logger, 'warn'>;
  checkEveryMs?: number;
}

/**
 * Starts the maintenance workflow and checks every minute that it runs; for any number of processes there is one.
 * Never throws. The returned function ends the checks, within 4.5 s.
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
