import type { SetupOrder, SetupOutcome } from '../../domain/setup-method.ts';

/** The registered type of the workflow; never changes. */
export const SETUP_METHOD_WORKFLOW = 'setupMethod';

export function setupMethodWorkflowId(setupMethodId: string): string {
  return `setup-method/${setupMethodId}`;
}

/** The argument of a run: ids and a one-time token, no personal data. Continue-as-new passes it on. */
export interface SetupMethodInput extends SetupOrder {
  /** Number of earlier requests to the gateway that found no outcome. */
  lookups: number;
  /** The activity runs inside the workflow task first. Absent in runs from before local activities. */
  isLocalFirst?: true;
}

/** A caller that joined a running workflow compares the token with its own: is it the same order? */
export interface SetupMethodResult {
  paymentToken: string;
  outcome: Exclude<SetupOutcome, { kind: 'pending' }>;
}
