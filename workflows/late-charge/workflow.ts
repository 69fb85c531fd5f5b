import { log, makeContinueAsNewFunc, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/index.ts';
import { lateLookDelayMs } from '../../domain/review.ts';
import { MONEY_MOVEMENT } from '../options.ts';
import { siblingTaskQueue } from '../task-queues.ts';
import { pollUntilSettled } from '../poll-until-settled.ts';
import type { LateChargeInput, LateChargeResult } from './messages.ts';

/**
 * Watches for a late charge: looks up for a week whether the gateway made a charge that is settled as not
 * paid. A charge that is found is booked, shown in the timeline and refunded by a separate refund.
 */
export async function lateCharge(input: LateChargeInput): Promise<LateChargeResult> {
  const { merchantId, attemptId, lookups } = input;
  const { lookForLateCharge } = proxyActivities<Activities>({
    ...MONEY_MOVEMENT,
    taskQueue: siblingTaskQueue('charges'),
    summary: `look for a late charge of ${attemptId}`,
    priority: { fairnessKey: merchantId },
  });
  const continueRun = makeContinueAsNewFunc<typeof lateCharge>();
  const outcome = await pollUntilSettled({
    subject: `late charge of \`${attemptId}\``,
    ask: (nowAt, looks) => lookForLateCharge({ merchantId, attemptId, nowAt, looks }),
    lookups,
    delayMs: lateLookDelayMs,
    continueAsNew: (looks) => continueRun({ ...input, lookups: looks }),
  });
  if (outcome.kind === 'found') log.warn('late charge found; it is refunded', { ...outcome });
  return { outcome };
}
