import {
  ActivityFailure,
  log,
  makeContinueAsNewFunc,
  proxyActivities,
  setCurrentDetails,
  sleep,
} from '@temporalio/workflow';
import type { Activities } from '../../activities/index.ts';
import { SWEEP, siblingTaskQueue } from '../activity-calls.ts';

const PAUSE_MS = 10_000;
const SWEEPS_PER_RUN = 100;
/** A sweep looks for workflows that closed within this time, in ms. Several sweeps find the same one. */
const LOOK_BACK_MS = 15 * 60_000;

/** Repeats a sweep and a pause of 10 s. A sweep that timed out may still run beside the next one, which is harmless. */
export async function maintenance(): Promise<void> {
  const { sweep } = proxyActivities<Activities>({
    ...SWEEP,
    taskQueue: siblingTaskQueue('charges'),
    summary: 'find and repair stuck work',
  });
  setCurrentDetails('Finds and repairs stuck work every 10 s.');
  for (let count = 0; count < SWEEPS_PER_RUN; count += 1) {
    try {
      // oxlint-disable-next-line no-restricted-properties -- the sandbox's clock: workflow time
      const report = await sweep({ nowAt: Date.now(), lookBackMs: LOOK_BACK_MS });
      if (Object.values(report).some((found) => found > 0)) log.warn('sweep found work', report);
    } catch (error) {
      if (!(error instanceof ActivityFailure)) throw error;
      log.warn('sweep failed', { reason: error.cause?.message ?? error.message });
    }
    await sleep(PAUSE_MS, { summary: 'until the next sweep' });
  }
  await makeContinueAsNewFunc<typeof maintenance>()();
}
