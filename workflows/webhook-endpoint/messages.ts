import { defineSignal, defineUpdate } from '@temporalio/workflow';
import type { PingResult } from '../../domain/delivery-schedule.ts';

/** The registered type of the workflow; never changes. */
export const WEBHOOK_ENDPOINT_WORKFLOW = 'webhookEndpoint';

export function webhookEndpointWorkflowId(configId: string): string {
  return `webhooks/${configId}`;
}

/** The lowest of Temporal's five. Only renewals after a merchant's first 5,000 subscriptions have it, too. */
export const WEBHOOK_ENDPOINT_PRIORITY = 5;

/** The endpoint may have new deliveries. Does not end a pause. */
export const wake = defineSignal('wake');

/** The circuit breaker may be closed: the workflow ends its pause, reads it, and sends at once if it is. */
export const breakerClosed = defineSignal('breakerClosed');

/** Sends a `webhook.ping`, also to an inactive endpoint, and returns the answer. */
export const ping = defineUpdate<PingResult>('ping');
