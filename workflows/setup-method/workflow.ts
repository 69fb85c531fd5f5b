import { makeContinueAsNewFunc } from '@temporalio/workflow';
import { moneyMovement } from '../local-first.ts';
import { pollUntilSettled } from '../poll-until-settled.ts';
import type { SetupMethodInput, SetupMethodResult } from './messages.ts';

/**
 * Carries one card of a setup session to its outcome: repeats one activity until there is an outcome. The
 * row decides whether the session takes the card. Rules: IF-4.13, D-§7.
 */
export async function setupMethod(input: SetupMethodInput): Promise<SetupMethodResult> {
  const { lookups, isLocalFirst: _, ...order } = input;
  const { saveSetupMethod } = moneyMovement(input);
  const continueRun = makeContinueAsNewFunc<typeof setupMethod>();
  const outcome = await pollUntilSettled({
    subject: `setup session \`${order.setupMethodId}\``,
    ask: (nowAt) =>
      saveSetupMethod(`save the payment method of ${order.setupMethodId}`, { ...order, nowAt }),
    lookups,
    continueAsNew: (asked) => continueRun({ ...input, lookups: asked }),
  });
  return { paymentToken: order.paymentToken, outcome };
}
