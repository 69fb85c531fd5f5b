import type { RefundOutcome, RefundRef } from '../../domain/refund.ts';

/** The registered type of the workflow; never changes. */
export const REFUND_WORKFLOW = 'refund';

export function refundWorkflowId(refundId: string): string {
  return `refund/${refundId}`;
}

/** The argument of a run. Continue-as-new passes it on. */
export interface RefundInput extends RefundRef {
  /** Number of earlier requests to the gateway that found no outcome. */
  lookups: number;
  /** The activity runs inside the workflow task first. Absent in runs from before local activities. */
  isLocalFirst?: true;
}

export interface RefundResult {
  outcome: Exclude<RefundOutcome, { kind: 'pending' }>;
}
