import { makeContinueAsNewFunc } from '@temporalio/workflow';
import { moneyMovement } from '../local-first.ts';
import { pollUntilSettled } from '../poll-until-settled.ts';
import type { SetupMethodInput, SetupMethodResult } from './messages.ts';

/**
 * One card for a setup session, carried to its outcome: one activity, run again until it has one.
 * Whether the session takes it, the row decides. Rules: IF-4.13, D-§7.
 */
export async function setupMethod(input: SetupMethodInput): Promise<SetupMethodResult> {
  const { lookups, isLocalFirst: _, ...order } = input;
  const { saveSetupMethod } = moneyMovement(input);
  const goOn = makeContinueAsNewFunc<typeof setupMethod>();
  const outcome = await pollUntilSettled({
    what: `setup session \`${order.setupMethodId}\``,
    ask: (nowAt) =>
      saveSetupMethod(`save the payment method of ${order.setupMethodId}`, { ...order, nowAt }),
    lookups,
    continueAsNew: (asked) => goOn({ ...input, lookups: asked }),
  });
  return { paymentToken: order.paymentToken, outcome };
}
