import { patched, upsertMemo, workflowInfo } from '@temporalio/workflow';
import * as released from '../../../workflows/index.ts';

/**
 * The workflows with a new first command, as a next release might have. A workflow whose id begins
 * with `patched/` has the command behind a patch.
 */
function beginDifferently(): void {
  const isPatched = workflowInfo().workflowId.startsWith('patched/');
  if (!isPatched || patched('a-memo-first')) upsertMemo({ changed: true });
}

function changed<Args extends unknown[], Result>(workflow: (...args: Args) => Result) {
  return (...args: Args): Result => {
    beginDifferently();
    return workflow(...args);
  };
}

export const subscription = changed(released.subscription);
export const payment = changed(released.payment);
export const refund = changed(released.refund);
export const lateCharge = changed(released.lateCharge);
export const setupMethod = changed(released.setupMethod);
export const maintenance = changed(released.maintenance);
export const gatewaySubject = changed(released.gatewaySubject);
export const webhookEndpoint = changed(released.webhookEndpoint);
