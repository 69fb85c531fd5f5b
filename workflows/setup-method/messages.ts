import type { SetupOrder, SetupOutcome } from '../../domain/setup-method.ts';

/** The registered type of the workflow; never changes. */
export const SETUP_METHOD_WORKFLOW = 'setupMethod';

export function setupMethodWorkflowId(setupMethodId: string): string {
  return `setup-method/${setupMethodId}`;
}

/** One run's argument, handed on by continue-as-new. Ids and a one-time token, nothing personal. */
export interface SetupMethodInput extends SetupOrder {
  /** How often the gateway was asked in vain. */
  lookups: number;
  /** The activity runs inside the workflow task first; absent in runs from before that. */
  isLocalFirst?: true;
}

/** Whoever found a run under way has to see whose order it carried out. */
export interface SetupMethodResult {
  paymentToken: string;
  outcome: Exclude<SetupOutcome, { kind: 'pending' }>;
}
