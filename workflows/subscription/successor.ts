import { condition, makeContinueAsNewFunc, workflowInfo } from '@temporalio/workflow';
import { WORKFLOW_TASK_TIMEOUT } from '../messages.ts';
import { attributesOf, fixedAttributesOf, memoOf, productNameOf, receiptIdIn } from './messages.ts';
import type { SubscriptionInput, SubscriptionResult } from './messages.ts';
import { interruptionOf } from './plan.ts';
import type { Run } from './run.ts';

/** If a run lasted less than this time in ms, Temporal delays its successor. */
const RUN_AGE_MS_MIN = 1_000;

/**
 * Continues as new, unless a message brings work. A run younger than 1 s waits first, because Temporal would delay its
 * successor, which would get no messages meanwhile.
 */
export async function handOver(run: Run): Promise<void> {
  const ageMs = run.clock.realNow - workflowInfo().runStartTime.getTime();
  if (ageMs < RUN_AGE_MS_MIN) {
    const isWoken = await condition(() => interruptionOf(run) !== null, RUN_AGE_MS_MIN - ageMs, {
      summary: 'let the run be a second old',
    });
    if (isWoken) return;
  }
  await continueAsNew(run);
}

async function continueAsNew(run: Run): Promise<never> {
  const { state, entries, clock } = run;
  const isRecheckWanted = run.isRecheckWanted || run.isLookupWanted;
  const next = makeContinueAsNewFunc<(input: SubscriptionInput) => Promise<SubscriptionResult>>({
    typedSearchAttributes: [
      ...attributesOf(state),
      ...fixedAttributesOf(receiptIdIn(workflowInfo().typedSearchAttributes)),
    ],
    memo: memoOf(productNameOf(workflowInfo())),
    workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT,
  });
  return next({
    state,
    entries,
    clock: clock.snapshot,
    deliver: false,
    needsResync: run.needsResync || isRecheckWanted,
    ...(isRecheckWanted && { isRecheckWanted }),
  });
}
