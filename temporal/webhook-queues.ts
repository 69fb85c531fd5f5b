import type { SignalDefinition } from '@temporalio/common';
import type { EndpointRef } from '../domain/endpoint-breaker.ts';
import type { StreamRef } from '../domain/events.ts';
import { WORKFLOW_QUEUE } from '../workflows/messages.ts';
import {
  breakerClosed,
  wake,
  WEBHOOK_ENDPOINT_PRIORITY,
  WEBHOOK_ENDPOINT_WORKFLOW,
  webhookEndpointWorkflowId,
} from '../workflows/webhook-endpoint/messages.ts';
import { orWarn } from './client.ts';
import type { TemporalDeps } from './client.ts';

interface WebhookQueuesDeps extends TemporalDeps {
  endpointsOf: (stream: StreamRef) => Promise<EndpointRef[]>;
}

const SIGNAL_WITHIN_MS = 1_000;
const NOT_WOKEN = 'endpoint queue not woken; the sweep will wake it';

export type WebhookQueues = ReturnType<typeof createWebhookQueues>;

/** Signals to the endpoint queues: the workflows that deliver an endpoint's events. None of them throws. */
export function createWebhookQueues(deps: WebhookQueuesDeps) {
  const { client, taskQueuePrefix, logger } = deps;

  const signal = async (endpoint: EndpointRef, message: SignalDefinition) => {
    const { merchantId, configId } = endpoint;
    await orWarn(logger, { merchantId, configId }, NOT_WOKEN, () =>
      client.withDeadline(Date.now() + SIGNAL_WITHIN_MS, () =>
        client.workflow.signalWithStart(WEBHOOK_ENDPOINT_WORKFLOW, {
          workflowId: webhookEndpointWorkflowId(configId),
          taskQueue: `${taskQueuePrefix}${WORKFLOW_QUEUE}`,
          args: [{ merchantId, configId }],
          signal: message,
          signalArgs: [],
          priority: { fairnessKey: merchantId, priorityKey: WEBHOOK_ENDPOINT_PRIORITY },
        }),
      ),
    );
  };

  return {
    /** Wakes the endpoint queue, or starts it. */
    wakeEndpoint: (endpoint: EndpointRef) => signal(endpoint, wake),
    /** Signals that a change of the configuration has closed the circuit breaker. */
    breakerClosed: (endpoint: EndpointRef) => signal(endpoint, breakerClosed),
    /** Wakes the queue of each endpoint that has pending events of the stream. */
    async wakeStream(stream: StreamRef): Promise<void> {
      await orWarn(logger, stream, NOT_WOKEN, async () => {
        const endpoints = await deps.endpointsOf(stream);
        await Promise.all(endpoints.map((endpoint) => signal(endpoint, wake)));
      });
    },
  };
}
