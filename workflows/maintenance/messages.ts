/** The registered type of the workflow; never changes. */
export const MAINTENANCE_WORKFLOW = 'maintenance';

/** Only one maintenance workflow runs per namespace and task queue prefix, because its id is fixed. */
export function maintenanceWorkflowId(taskQueuePrefix: string): string {
  return `${taskQueuePrefix}maintenance`;
}
