import { defineSignal } from '@temporalio/workflow';

/** The registered type of the workflow; never changes. */
export const WEBHOOK_STREAM_WORKFLOW = 'webhookStream';

export function webhookStreamWorkflowId(streamId: string): string {
  return `webhooks/${streamId}`;
}

export interface WebhookStreamInput {
  merchantId: string;
  streamId: string;
}

/** The stream may have new events to deliver. */
export const wake = defineSignal('wake');
