import type { AttemptRef, LateChargeOutcome } from '../../domain/review.ts';

/** The registered type of the workflow; never changes. */
export const LATE_CHARGE_WORKFLOW = 'lateCharge';

export function lateChargeWorkflowId(attemptId: string): string {
  return `late-charge/${attemptId}`;
}

/** One run's argument, handed on by continue-as-new. */
export interface LateChargeInput extends AttemptRef {
  /** How often the gateway was asked before. */
  lookups: number;
}

export interface LateChargeResult {
  outcome: Exclude<LateChargeOutcome, { kind: 'pending' }>;
}
