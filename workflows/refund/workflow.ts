import { makeContinueAsNewFunc } from '@temporalio/workflow';
import { moneyMovement } from '../local-first.ts';
import { pollUntilSettled } from '../poll-until-settled.ts';
import type { RefundInput, RefundResult } from './messages.ts';

/**
 * Carries one refund to its outcome: repeats one activity until there is an outcome. The row decides
 * whether anything is refunded. Rule: D-§7.
 */
export async function refund(input: RefundInput): Promise<RefundResult> {
  const { merchantId, refundId, lookups } = input;
  const { refundPayment } = moneyMovement(input);
  const continueRun = makeContinueAsNewFunc<typeof refund>();
  const outcome = await pollUntilSettled({
    subject: `refund \`${refundId}\``,
    ask: (nowAt, asked) =>
      refundPayment(`send refund ${refundId}`, { merchantId, refundId, nowAt, lookups: asked }),
    lookups,
    continueAsNew: (asked) => continueRun({ ...input, lookups: asked }),
  });
  return { outcome };
}
