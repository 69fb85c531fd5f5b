/** All workflow types. An exported name is the name of its type and never changes. */
export { subscription } from './subscription/workflow.ts';
export { payment } from './payment/workflow.ts';
export { refund } from './refund/workflow.ts';
export { lateCharge } from './late-charge/workflow.ts';
export { setupMethod } from './setup-method/workflow.ts';
export { maintenance } from './maintenance/workflow.ts';
export { webhookStream } from './webhook-stream/workflow.ts';
export { webhookEndpoint } from './webhook-endpoint/workflow.ts';
