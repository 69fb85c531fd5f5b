import { makeContinueAsNewFunc } from '@temporalio/workflow';
import { moneyMovement } from '../local-first.ts';
import { pollUntilSettled } from '../poll-until-settled.ts';
import type { PaymentInput, PaymentResult } from './messages.ts';

/**
 * One order to pay an intent that is not a cycle's, carried to its outcome: one activity, run again
 * until it has one. Whether anything is charged, the row decides. Rules: D-35, D-36, D-40.
 */
export async function payment(input: PaymentInput): Promise<PaymentResult> {
  const { merchantId, intentId, token, lookups } = input;
  const { chargePayment } = moneyMovement(input);
  const goOn = makeContinueAsNewFunc<typeof payment>();
  const outcome = await pollUntilSettled({
    what: `payment \`${intentId}\``,
    ask: (nowAt, asked) =>
      chargePayment(`charge or settle ${intentId}`, {
        merchantId,
        intentId,
        token,
        nowAt,
        lookups: asked,
      }),
    lookups,
    continueAsNew: (asked) => goOn({ ...input, lookups: asked }),
  });
  return { paymentToken: token?.paymentToken ?? null, outcome };
}
