import type { AttemptRef, LateChargeOutcome } from '../../domain/review.ts';

/** The registered type of the workflow; never changes. */
export const LATE_CHARGE_WORKFLOW = 'lateCharge';

export function lateChargeWorkflowId(attemptId: string): string {
  return `late-charge/${attemptId}`;
}

/** The argument of a run. Continue-as-new passes it on. */
export interface LateChargeInput extends AttemptRef {
  /** Number of earlier look-ups. */
  lookups: number;
}

export interface LateChargeResult {
  outcome: Exclude<LateChargeOutcome, { kind: 'pending' }>;
}
