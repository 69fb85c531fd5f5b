import { log, TemporalFailure } from '@temporalio/workflow';
import type { ActivityOptions, LocalActivityOptions } from '@temporalio/workflow';

export interface Call<Options, Input, Output> {
  executeWithOptions(options: Options, args: [Input]): Promise<Output>;
}

/**
 * Returns a function that first runs an activity as a local activity, so that one workflow task does the
 * whole step. If the local activity fails, for example after 3 s or without a database, the function
 * schedules the same activity on its task queue. There it has retries and more time. The activity must
 * therefore be safe to run twice.
 */
export function localFirst<Input, Output>(
  local: Call<LocalActivityOptions, Input, Output>,
  queued: Call<ActivityOptions, Input, Output>,
): (summary: string, input: Input) => Promise<Output> {
  return async (summary, input) => {
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
    return queued.executeWithOptions({ summary }, [input]);
  };
}
