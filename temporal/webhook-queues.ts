import type { Client } from '@temporalio/client';
import type { SignalDefinition } from '@temporalio/common';
import {
  breakerClosed,
  wake,
  WEBHOOK_ENDPOINT_PRIORITY,
  WEBHOOK_ENDPOINT_WORKFLOW,
  webhookEndpointWorkflowId,
} from '../workflows/webhook-endpoint/messages.ts';
import type { WebhookEndpointInput } from '../workflows/webhook-endpoint/messages.ts';
import type { Logger } from '../runtime/logger.ts';

/** Signals to the endpoint queues: the workflows that deliver an endpoint's events. */
export interface WebhookQueues {
  /** Wakes the endpoint queue, or starts it. Never throws: the sweep wakes it later. */
  wakeEndpoint: (endpoint: WebhookEndpointInput) => Promise<void>;
  /** Signals the queue that a change of the configuration has closed the circuit breaker. Never throws. */
  breakerClosed(endpoint: WebhookEndpointInput): Promise<void>;
  /** Wakes the queue of each endpoint that has pending events of the stream. Never throws. */
  wakeStream(stream: { merchantId: string; streamId: string }): Promise<void>;
}

export interface WebhookQueuesDeps {
  client: Client;
  taskQueuePrefix: string;
  logger: Pick<Logger, 'warn'>;
  endpointsOf: (stream: {
    merchantId: string;
    streamId: string;
  }) => Promise<WebhookEndpointInput[]>;
}

const SIGNAL_WITHIN_MS = 1_000;

export function createWebhookQueues(deps: WebhookQueuesDeps): WebhookQueues {
  const { client, taskQueuePrefix, logger } = deps;

  const orWarn = async (where: object, waking: () => Promise<unknown>): Promise<void> => {
    try {
      await waking();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      logger.warn({ ...where, error: reason }, 'endpoint queue not woken; the sweep will wake it');
    }
  };

  const signal = ({ merchantId, configId }: WebhookEndpointInput, message: SignalDefinition) =>
    orWarn({ merchantId, configId }, () =>
      client.withDeadline(Date.now() + SIGNAL_WITHIN_MS, () =>
        client.workflow.signalWithStart(WEBHOOK_ENDPOINT_WORKFLOW, {
          workflowId: webhookEndpointWorkflowId(configId),
          taskQueue: `${taskQueuePrefix}billing`,
          args: [{ merchantId, configId }],
          signal: message,
          signalArgs: [],
          priority: { fairnessKey: merchantId, priorityKey: WEBHOOK_ENDPOINT_PRIORITY },
        }),
      ),
    );

  return {
    wakeEndpoint: (endpoint) => signal(endpoint, wake),
    breakerClosed: (endpoint) => signal(endpoint, breakerClosed),
    wakeStream: (stream) =>
      orWarn(stream, async () => {
        const endpoints = await deps.endpointsOf(stream);
        await Promise.all(endpoints.map((endpoint) => signal(endpoint, wake)));
      }),
  };
}
