import type { Router } from '@koa/router';
import { hasSubscription } from '../../../db/repositories/subscriptions-read.ts';
import type { Command, CommandResult } from '../../../domain/subscription/commands.ts';
import { notFound, ok } from '../../answers.ts';
import { executeCommand } from '../../commands.ts';
import { callerOf } from '../../context.ts';
import type { Context, RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { readFields } from '../../fields.ts';
import { answerOutcome } from '../../idempotency.ts';
import { readEditSubscription } from './edit.ts';
import { presentManualRetry } from './present.ts';
import { SubscriptionIdBody, UnpauseSubscriptionBody } from './schema.ts';

/** Commands to a subscription. Its workflow validates and executes each command. */
export function commandRoutes(router: Router<RequestState>, deps: ApiDeps): void {
  /** Rules: IF-4.6, D-15, D-16. */
  router.post('/subscription/edit', async (ctx) => {
    const { subscriptionId, ...changes } = readEditSubscription(ctx.state.body);
    await answerCommand(deps, ctx, subscriptionId, (commandId) => ({
      kind: 'edit',
      commandId,
      ...changes,
    }));
  });

  /** Rules: IF-4.7, D-16. */
  router.post('/subscription/merchant/cancel', async (ctx) => {
    const { subscriptionId } = readFields(SubscriptionIdBody, ctx.state.body);
    await answerCommand(deps, ctx, subscriptionId, (commandId) => ({
      kind: 'cancel',
      commandId,
      reason: 'cancelled',
    }));
  });

  /** An extension. Rules: D-§4, D-16. */
  router.post('/subscription/merchant/pause', async (ctx) => {
    const { subscriptionId } = readFields(SubscriptionIdBody, ctx.state.body);
    await answerCommand(deps, ctx, subscriptionId, (commandId) => ({ kind: 'pause', commandId }));
  });

  /** Rules: IF-4.8, D-§4, D-16. */
  router.post('/subscription/merchant/unpause', async (ctx) => {
    const body = readFields(UnpauseSubscriptionBody, ctx.state.body);
    await answerCommand(deps, ctx, body.subscriptionId, (commandId) => ({
      kind: 'unpause',
      commandId,
      newNextPaymentAt: body.newNextPaymentDate,
    }));
  });

  /** A declined retry is answered 200. Rules: IF-4.9, D-31. */
  router.post('/subscription/manual-retry', async (ctx) => {
    const { subscriptionId } = readFields(SubscriptionIdBody, ctx.state.body);
    await answerCommand(
      deps,
      ctx,
      subscriptionId,
      (commandId) => ({ kind: 'manualRetry', commandId }),
      presentManualRetry,
    );
  });
}

/**
 * Answers with the result of a command: `{}` without `present`. All calls with one Idempotency-Key have
 * the same command id, so the command is executed once. Rules: D-17, D-32.
 */
async function answerCommand(
  deps: ApiDeps,
  ctx: Context,
  subscriptionId: string,
  commandOf: (commandId: string) => Command,
  present: (result: CommandResult) => object = () => ({}),
): Promise<void> {
  const ref = { merchantId: callerOf(ctx).id, subscriptionId };
  await answerOutcome(deps, ctx, async ({ commandId }) => {
    if (!(await hasSubscription(deps.db, ref.merchantId, subscriptionId))) {
      throw notFound('subscription');
    }
    return ok(present(await executeCommand(deps.workflows, ref, commandOf(commandId))));
  });
}
