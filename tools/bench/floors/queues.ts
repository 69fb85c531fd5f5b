/**
 * Task queues of the baseline workflows, whose activities do nothing. The product's workers do not poll these
 * queues.
 */
export const WORKFLOW_QUEUE = 'floor-workflows';
export const CHARGES_QUEUE = 'floor-charges';
export const WEBHOOKS_QUEUE = 'floor-webhooks';
