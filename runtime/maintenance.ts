import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { MAINTENANCE_WORKFLOW, maintenanceWorkflowId } from '../workflows/maintenance/messages.ts';
import type { Logger } from './logger.ts';
import { ACCEPT_WITHIN_MS } from './temporal.ts';

const CHECK_EVERY_MS = 60_000;

export interface MaintenanceChecksDeps {
  client: Client;
  /** `<prefix>billing` is where workflows run. */
  taskQueuePrefix: string;
  logger: Pick<Logger, 'warn'>;
  /** Between two checks. Default: a minute. */
  checkEveryMs?: number;
}

/**
 * Starts the sweeps at once, and again at the next check if somebody terminated them. However many
 * processes do so, one workflow runs. Never throws: a start that fails is logged, and the next check
 * tries again. Answers how to end the checks, which resolves when none is under way, after some
 * seconds at most: no connection may be closed under one. The workflow goes on without. Design §5.
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
      logger.warn({ error: reason }, 'the sweeps were not started');
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
