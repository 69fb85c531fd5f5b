import { log, TemporalFailure } from '@temporalio/workflow';
import type { ActivityOptions, LocalActivityOptions } from '@temporalio/workflow';

export interface Call<Options, Input, Output> {
  executeWithOptions(options: Options, args: [Input]): Promise<Output>;
}

/**
 * Returns a function that runs an activity inside the workflow task and, if that fails (after 3 s, without a
 * database), on its task queue; a look-up only there, so that a gateway that hangs does not occupy the worker's 40
 * workflow tasks. The activity must be safe to run twice.
 */
export function localFirst<Input, Output>(
  local: Call<LocalActivityOptions, Input, Output>,
  queued: Call<ActivityOptions, Input, Output>,
): (summary: string, input: Input, isLookup?: boolean) => Promise<Output> {
  return async (summary, input, isLookup = false) => {
    if (isLookup) return queued.executeWithOptions({ summary }, [input]);
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
