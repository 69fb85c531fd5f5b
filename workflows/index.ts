/** All workflow types. An exported name is the name of its type and never changes. */
export { subscription } from './subscription/workflow.ts';
export { lateCharge, payment, refund, setupMethod } from './orders/workflows.ts';
export { maintenance } from './maintenance/workflow.ts';
export { webhookEndpoint } from './webhook-endpoint/workflow.ts';
export { gatewaySubject } from './gateway-subject/workflow.ts';
