import { log, makeContinueAsNewFunc, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/index.ts';
import { lateLookDelayMs } from '../../domain/review.ts';
import { MONEY_MOVEMENT } from '../options.ts';
import { siblingTaskQueue } from '../task-queues.ts';
import { pollUntilSettled } from '../poll-until-settled.ts';
import type { LateChargeInput, LateChargeResult } from './messages.ts';

/**
 * Looks, for a week, whether the gateway made a charge after all that a person had settled as not
 * made. One that it finds is booked, told of and given back by a refund of its own. Design §4.
 */
export async function lateCharge(input: LateChargeInput): Promise<LateChargeResult> {
  const { merchantId, attemptId, lookups } = input;
  const { lookForLateCharge } = proxyActivities<Activities>({
    ...MONEY_MOVEMENT,
    taskQueue: siblingTaskQueue('charges'),
    summary: `look for a late charge of ${attemptId}`,
    priority: { fairnessKey: merchantId },
  });
  const goOn = makeContinueAsNewFunc<typeof lateCharge>();
  const outcome = await pollUntilSettled({
    what: `a late charge of \`${attemptId}\``,
    ask: (nowAt, looks) => lookForLateCharge({ merchantId, attemptId, nowAt, looks }),
    lookups,
    delayMs: lateLookDelayMs,
    continueAsNew: (looks) => goOn({ ...input, lookups: looks }),
  });
  if (outcome.kind === 'found') log.warn('late charge found, it is given back', { ...outcome });
  return { outcome };
}
