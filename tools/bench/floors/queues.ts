export const WORKFLOW_QUEUE = 'floor-workflows';
export const CHARGES_QUEUE = 'floor-charges';
export const WEBHOOKS_QUEUE = 'floor-webhooks';
