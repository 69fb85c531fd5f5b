import { log, makeContinueAsNewFunc, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/index.ts';
import { lateLookDelayMs } from '../../domain/review.ts';
import { moneyMovement } from '../local-first.ts';
import { MONEY_MOVEMENT } from '../options.ts';
import { siblingTaskQueue } from '../task-queues.ts';
import type {
  LateChargeInput,
  LateChargeResult,
  PaymentInput,
  PaymentResult,
  RefundInput,
  RefundResult,
  SetupMethodInput,
  SetupMethodResult,
} from './messages.ts';
import { pollUntilSettled } from './poll-until-settled.ts';

/**
 * Executes one order for a payment outside the billing cycles: repeats one activity until the order has an
 * outcome. The activity reads the intent's row to decide whether to charge. Rules: D-35, D-36, D-40.
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

/**
 * Executes one refund: repeats one activity until the refund has an outcome. The activity reads the refund's
 * row to decide whether to send the refund. Rule: D-§7.
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

/**
 * Saves one card for a setup session: repeats one activity until the card is saved, declined or refused. The
 * activity reads the session's row to decide whether to accept the card. Rules: IF-4.13, D-§7.
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

/**
 * Watches for a late charge: checks for a week whether the gateway has charged an attempt that is settled as
 * not paid. If the gateway has charged, the activity records the charge, adds an entry to the timeline and starts
 * the refund of the charge.
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
