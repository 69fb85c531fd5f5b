import { makeContinueAsNewFunc, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/index.ts';
import { MONEY_MOVEMENT } from '../options.ts';
import { siblingTaskQueue } from '../task-queues.ts';
import { untilDecided } from '../until-decided.ts';
import type { SetupMethodInput, SetupMethodResult } from './messages.ts';

/**
 * One card for a setup session, carried to its outcome: one activity, run again until it has one.
 * Whether the session takes it, the row decides. Rules: IF-4.13, D-§7.
 */
export async function setupMethod(input: SetupMethodInput): Promise<SetupMethodResult> {
  const { lookups, ...order } = input;
  const { saveSetupMethod } = proxyActivities<Activities>({
    ...MONEY_MOVEMENT,
    taskQueue: siblingTaskQueue('charges'),
    summary: `save the payment method of ${order.setupMethodId}`,
    priority: { fairnessKey: order.merchantId },
  });
  const goOn = makeContinueAsNewFunc<typeof setupMethod>();
  const outcome = await untilDecided({
    what: `setup session \`${order.setupMethodId}\``,
    ask: (nowAt) => saveSetupMethod({ ...order, nowAt }),
    lookups,
    continueAsNew: (asked) => goOn({ ...order, lookups: asked }),
  });
  return { paymentToken: order.paymentToken, outcome };
}
