import { WithStartWorkflowOperation } from '@temporalio/client';
import type { SignalDefinition } from '@temporalio/common';
import type { PingResult } from '../domain/delivery-schedule.ts';
import type { EndpointRef } from '../domain/endpoint-breaker.ts';
import { DomainError } from '../domain/errors.ts';
import type { StreamRef } from '../domain/events.ts';
import { WORKFLOW_QUEUE } from '../workflows/messages.ts';
import {
  breakerClosed,
  ping,
  wake,
  WEBHOOK_ENDPOINT_PRIORITY,
  WEBHOOK_ENDPOINT_WORKFLOW,
  webhookEndpointWorkflowId,
} from '../workflows/webhook-endpoint/messages.ts';
import { ANSWER_WITHIN_MS, orWarn } from './client.ts';
import type { TemporalDeps } from './client.ts';

interface WebhookQueuesDeps extends TemporalDeps {
  endpointsOf: (stream: StreamRef) => Promise<EndpointRef[]>;
}

const SIGNAL_WITHIN_MS = 1_000;
const NOT_WOKEN = 'endpoint queue not woken; the sweep will wake it';

export type WebhookQueues = ReturnType<typeof createWebhookQueues>;

/** Calls of the endpoint queues: the workflows that deliver an endpoint's events. Only `ping` throws. */
export function createWebhookQueues(deps: WebhookQueuesDeps) {
  const { client, taskQueuePrefix, logger } = deps;

  const queueOf = ({ merchantId, configId }: EndpointRef) => ({
    workflowId: webhookEndpointWorkflowId(configId),
    taskQueue: `${taskQueuePrefix}${WORKFLOW_QUEUE}`,
    args: [{ merchantId, configId }],
    priority: { fairnessKey: merchantId, priorityKey: WEBHOOK_ENDPOINT_PRIORITY },
  });

  const signal = async (endpoint: EndpointRef, message: SignalDefinition) => {
    const { merchantId, configId } = endpoint;
    const options = { ...queueOf(endpoint), signal: message, signalArgs: [] as [] };
    await orWarn(logger, { merchantId, configId }, NOT_WOKEN, () =>
      client.withDeadline(Date.now() + SIGNAL_WITHIN_MS, () =>
        client.workflow.signalWithStart(WEBHOOK_ENDPOINT_WORKFLOW, options),
      ),
    );
  };

  return {
    /** Wakes the endpoint queue, or starts it. */
    wakeEndpoint: (endpoint: EndpointRef) => signal(endpoint, wake),
    /** Signals that a change of the configuration has closed the circuit breaker. */
    breakerClosed: (endpoint: EndpointRef) => signal(endpoint, breakerClosed),
    /** @throws DomainError `service_unavailable` without an answer within 25 s; a ping may still be sent. */
    async ping(endpoint: EndpointRef): Promise<PingResult> {
      const start = new WithStartWorkflowOperation(WEBHOOK_ENDPOINT_WORKFLOW, {
        ...queueOf(endpoint),
        workflowIdConflictPolicy: 'USE_EXISTING',
      });
      const update = { startWorkflowOperation: start };
      return client
        .withDeadline(Date.now() + ANSWER_WITHIN_MS, () =>
          client.workflow.executeUpdateWithStart(ping, update),
        )
        .catch((error: unknown) => {
          throw new DomainError('service_unavailable', undefined, { cause: error });
        });
    },
    /** Wakes the queue of each endpoint that has pending events of the stream. */
    async wakeStream(stream: StreamRef): Promise<void> {
      await orWarn(logger, stream, NOT_WOKEN, async () => {
        const endpoints = await deps.endpointsOf(stream);
        await Promise.all(endpoints.map((endpoint) => signal(endpoint, wake)));
      });
    },
  };
}
