import { setTimeout as sleep } from 'node:timers/promises';
import { MAINTENANCE_WORKFLOW, maintenanceWorkflowId } from '../workflows/maintenance/messages.ts';
import { WORKFLOW_QUEUE } from '../workflows/messages.ts';
import type { Logger } from '../runtime/logger.ts';
import { accepted, orWarn } from './client.ts';
import type { TemporalDeps } from './client.ts';

const CHECK_EVERY_MS = 60_000;

/** Checks every minute that the one workflow runs. The returned function ends the checks. */
export function keepMaintenanceRunning(
  deps: Omit<TemporalDeps, 'logger'> & { logger: Pick<Logger, 'warn'>; checkEveryMs?: number },
): () => Promise<void> {
  const { client, taskQueuePrefix, logger, checkEveryMs = CHECK_EVERY_MS } = deps;
  const ending = new AbortController();

  const start = () =>
    orWarn(logger, {}, 'the maintenance workflow was not started', () =>
      accepted(client, () =>
        client.workflow.start(MAINTENANCE_WORKFLOW, {
          workflowId: maintenanceWorkflowId(taskQueuePrefix),
          taskQueue: `${taskQueuePrefix}${WORKFLOW_QUEUE}`,
          workflowIdConflictPolicy: 'USE_EXISTING',
        }),
      ),
    );
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
