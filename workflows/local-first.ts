import { log, proxyActivities, proxyLocalActivities, TemporalFailure } from '@temporalio/workflow';
import type { ActivityOptions, LocalActivityOptions } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import { INSIDE_WORKFLOW_TASK, MONEY_MOVEMENT } from './options.ts';
import { siblingTaskQueue } from './task-queues.ts';

interface Call<Options, Input, Output> {
  executeWithOptions(options: Options, args: [Input]): Promise<Output>;
}

/**
 * Makes an activity one call. The call runs inside the workflow task first, as a local activity, so one
 * workflow task does the whole step. If that fails (3 s are over, the database is away), the same call
 * goes to the activity queue, which has retries and more time. This is safe: every activity may run
 * twice. Runs that began before local activities have no `local` and use only the activity queue.
 */
export function localFirst<Input, Output>(
  local: Call<LocalActivityOptions, Input, Output> | null,
  queued: Call<ActivityOptions, Input, Output>,
): (summary: string, input: Input) => Promise<Output> {
  return async (summary, input) => {
    if (local) {
      try {
        return await local.executeWithOptions({ summary }, [input]);
      } catch (error) {
        // The error of a local activity is not wrapped in an ActivityFailure.
        if (!(error instanceof TemporalFailure)) throw error;
        log.info('a local activity failed; the activity queue runs it now', {
          summary,
          reason: error.message,
        });
      }
    }
    return queued.executeWithOptions({ summary }, [input]);
  };
}

/** The activities for orders outside a cycle, each as one call. */
export function moneyMovement(input: { merchantId: string; isLocalFirst?: true }) {
  const local = input.isLocalFirst ? proxyLocalActivities<Activities>(INSIDE_WORKFLOW_TASK) : null;
  const queued = proxyActivities<Activities>({
    ...MONEY_MOVEMENT,
    taskQueue: siblingTaskQueue('charges'),
    priority: { priorityKey: 2, fairnessKey: input.merchantId },
  });
  return {
    chargePayment: localFirst(local && local.chargePayment, queued.chargePayment),
    refundPayment: localFirst(local && local.refundPayment, queued.refundPayment),
    saveSetupMethod: localFirst(local && local.saveSetupMethod, queued.saveSetupMethod),
  };
}
