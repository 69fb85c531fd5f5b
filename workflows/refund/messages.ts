import type { RefundOutcome, RefundRef } from '../../domain/refund.ts';

/** The registered type of the workflow; never changes. */
export const REFUND_WORKFLOW = 'refund';

export function refundWorkflowId(refundId: string): string {
  return `refund/${refundId}`;
}

/** One run's argument, handed on by continue-as-new. */
export interface RefundInput extends RefundRef {
  /** How often the gateway was asked in vain. */
  lookups: number;
  /** The activity runs inside the workflow task first; absent in runs from before that. */
  isLocalFirst?: true;
}

export interface RefundResult {
  outcome: Exclude<RefundOutcome, { kind: 'pending' }>;
}
