import { defineSignal } from '@temporalio/workflow';

/** The registered type of the workflow; never changes. */
export const WEBHOOK_ENDPOINT_WORKFLOW = 'webhookEndpoint';

export function webhookEndpointWorkflowId(configId: string): string {
  return `webhooks/${configId}`;
}

export interface WebhookEndpointInput {
  merchantId: string;
  configId: string;
}

/**
 * The lowest of Temporal's five priorities: a backlog of webhooks delays neither charges nor
 * subscriptions.
 */
export const WEBHOOK_ENDPOINT_PRIORITY = 5;

/** The endpoint may have new deliveries. */
export const wake = defineSignal('wake');

/** The merchant changed the configuration. This closed the breaker and ends a pause. */
export const breakerClosed = defineSignal('breakerClosed');
