import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import type { SearchAttributePair } from '@temporalio/common';

/** The task queue of every workflow. */
export const WORKFLOW_QUEUE = 'billing';

/** The priority key of workflows for which a payer or a merchant waits. Temporal dispatches lower keys first. */
export const PAYER_PRIORITY = 1;

/** After this time another worker gets a dead worker's task. Longer than the 3 s of a local activity. */
export const WORKFLOW_TASK_TIMEOUT = '6 seconds';

/** The build id of a worker without a deployment. */
export const BUILD_ID = 'perennial';

/**
 * The search attribute that Temporal gives a run of such a worker in its first task. A run that starts with it is
 * written to the list of workflows once less.
 */
export const BUILD_IDS: SearchAttributePair = {
  key: defineSearchAttributeKey('BuildIds', SearchAttributeType.KEYWORD_LIST),
  value: ['unversioned', `unversioned:${BUILD_ID}`],
};
