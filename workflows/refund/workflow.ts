import { makeContinueAsNewFunc } from '@temporalio/workflow';
import { moneyMovement } from '../local-first.ts';
import { pollUntilSettled } from '../poll-until-settled.ts';
import type { RefundInput, RefundResult } from './messages.ts';

/**
 * One refund, carried to its outcome: one activity, run again until it has one. Whether anything is
 * given back, the row decides. Rule: D-§7.
 */
export async function refund(input: RefundInput): Promise<RefundResult> {
  const { merchantId, refundId, lookups } = input;
  const { refundPayment } = moneyMovement(input);
  const goOn = makeContinueAsNewFunc<typeof refund>();
  const outcome = await pollUntilSettled({
    what: `refund \`${refundId}\``,
    ask: (nowAt, asked) =>
      refundPayment(`give back ${refundId}`, { merchantId, refundId, nowAt, lookups: asked }),
    lookups,
    continueAsNew: (asked) => goOn({ ...input, lookups: asked }),
  });
  return { outcome };
}
