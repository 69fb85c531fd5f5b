import type { WorkflowHandle } from '@temporalio/client';

/** Returns the current details of the workflow, which the Temporal Web UI shows. */
export async function detailsOf(handle: Pick<WorkflowHandle, 'query'>): Promise<string> {
  const { currentDetails } = await handle.query<{ currentDetails: string }>(
    '__temporal_workflow_metadata',
  );
  return currentDetails;
}
