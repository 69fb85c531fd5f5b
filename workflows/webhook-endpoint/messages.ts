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

/** The lowest of Temporal's five, so that a backlog delays neither charges nor subscriptions. */
export const WEBHOOK_ENDPOINT_PRIORITY = 5;

/** The endpoint may have new deliveries. */
export const wake = defineSignal('wake');

/** A change of the configuration has closed the circuit breaker: the workflow ends its pause and sends at once. */
export const breakerClosed = defineSignal('breakerClosed');
