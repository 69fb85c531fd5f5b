/**
 * Task queues of the floors: bare workflows with empty activities. The product's workers do not poll them.
 */
export const WORKFLOW_QUEUE = 'floor-workflows';
export const CHARGES_QUEUE = 'floor-charges';
export const WEBHOOKS_QUEUE = 'floor-webhooks';
