import { makeContinueAsNewFunc } from '@temporalio/workflow';
import { moneyMovement } from '../local-first.ts';
import { pollUntilSettled } from '../poll-until-settled.ts';
import type { PaymentInput, PaymentResult } from './messages.ts';

/**
 * Carries one order for a payment outside a billing cycle to its outcome: repeats one activity until there
 * is an outcome. The row decides whether anything is charged. Rules: D-35, D-36, D-40.
 */
export async function payment(input: PaymentInput): Promise<PaymentResult> {
  const { merchantId, intentId, token, lookups } = input;
  const { chargePayment } = moneyMovement(input);
  const continueRun = makeContinueAsNewFunc<typeof payment>();
  const outcome = await pollUntilSettled({
    subject: `payment \`${intentId}\``,
    ask: (nowAt, asked) =>
      chargePayment(`charge or settle ${intentId}`, {
        merchantId,
        intentId,
        token,
        nowAt,
        lookups: asked,
      }),
    lookups,
    continueAsNew: (asked) => continueRun({ ...input, lookups: asked }),
  });
  return { paymentToken: token?.paymentToken ?? null, outcome };
}
