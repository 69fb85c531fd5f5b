import { cancelHostedPayment, findIntent } from '../../../db/repositories/payments.ts';
import { DomainError } from '../../../domain/errors.ts';
import { notFound, ok } from '../../answers.ts';
import { executeCommand } from '../../commands.ts';
import { callerOf, pathParam } from '../../context.ts';
import type { Context } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { answerInTransaction, answerOutcome } from '../../idempotency.ts';
import { checkCancelIntent } from './schema.ts';

/**
 * Cancels an intent whose checkout is open. A hosted payment is cancelled in its row. The first intent of
 * a subscription is cancelled by the subscription's workflow, which ends the subscription. An intent
 * never moves to another subscription, so every call with one key takes the same branch. Rules: IF-4.11,
 * D-14, D-16, D-41.
 */
export async function cancelIntent(deps: ApiDeps, ctx: Context): Promise<void> {
  const { id: merchantId } = callerOf(ctx);
  const intentId = pathParam(ctx, 'xIntentId');
  checkCancelIntent(ctx.state.body, intentId);
  const intent = await findIntent(deps.db, merchantId, intentId);
  const { subscriptionId = null, cycleNumber = null } = intent ?? {};
  if (subscriptionId !== null && cycleNumber === 1) {
    await answerOutcome(deps, ctx, async ({ commandId }) => {
      const command = { kind: 'cancel', commandId, reason: 'checkout_cancelled' } as const;
      await executeCommand(deps.workflows, { merchantId, subscriptionId }, command);
      return ok({});
    });
    return;
  }
  await answerInTransaction(deps, ctx, async (tx) => {
    if (!intent) throw notFound('payment intent');
    const cancelled = await cancelHostedPayment(tx, { merchantId, intentId }, deps.now());
    if (!cancelled.ok) throw new DomainError('operation_not_allowed', cancelled.message);
    return { answer: ok({}) };
  });
}
