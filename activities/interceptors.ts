import type { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import type { Transition } from '../db/repositories/subscriptions/write-change.ts';
import type { OrderKind } from '../domain/order.ts';
import type { SubscriptionState } from '../domain/subscription/state.ts';
import { within } from '../runtime/time-limit.ts';
import { traced } from '../runtime/tracing.ts';
import type { ChargeAttemptInput } from './subscription.ts';

/** Interval of heartbeats, in ms, shorter than the heartbeat timeout of every activity, 5 s. */
const HEARTBEAT_EVERY_MS = 1_000;

/** Time limit of a local activity, in ms, shorter than the timeout of a workflow task, 6 s. */
const LOCAL_BUDGET_MS = 3_000;

/**
 * A crashed activity is retried 5 s after its last heartbeat. A local activity fails after 3 s but runs on, so
 * activities must be safe beside their retry. `onAwaited`: called before work for which a payer or a merchant waits.
 */
export const activityInterceptor =
  (onAwaited: () => void): ActivityInterceptorsFactory =>
  (context) => ({
    inbound: {
      execute: (input, next) => {
        if (isAwaited(context.info.workflowType, input.args[0])) onAwaited();
        return traced(
          `activity ${context.info.activityType}`,
          () => ({
            workflowId: context.info.workflowExecution?.workflowId,
            intentId: owedIntentIn(input.args[0]),
            attributes: { 'perennial.attempt': context.info.attempt },
          }),
          () =>
            context.info.isLocal
              ? within(LOCAL_BUDGET_MS, next(input), localBudgetOver)
              : beating(context, next(input)),
        );
      },
    },
  });

const AWAITED_ORDERS: readonly string[] = [
  'payment',
  'refund',
  'setupMethod',
] satisfies OrderKind[];

/** True for an order, and for a subscription's change or charge that a command caused. */
function isAwaited(workflowType: string | undefined, input: unknown): boolean {
  const { command, opening } = (input ?? {}) as Partial<Transition & ChargeAttemptInput>;
  return AWAITED_ORDERS.includes(workflowType ?? '') || Boolean(command ?? opening?.command);
}

/** The intent of the cycle that the subscription of the input owes. */
function owedIntentIn(input: unknown): string | undefined {
  return (input as { state?: SubscriptionState } | undefined)?.state?.owed?.intentId;
}

async function beating<T>(context: Context, work: Promise<T>): Promise<T> {
  const timer = setInterval(() => context.heartbeat(), HEARTBEAT_EVERY_MS);
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}

function localBudgetOver(): ApplicationFailure {
  const message = `did not end within ${LOCAL_BUDGET_MS / 1_000} s`;
  return ApplicationFailure.create({ type: 'local_budget_over', message, nonRetryable: true });
}
