import type { EndpointRef } from '../db/repositories/deliveries.ts';
import { LARGEST_WINDOW } from '../domain/endpoint-breaker.ts';
import { createDeliveryDispatcher } from './delivery-dispatcher.ts';
import type { DeliveryDispatcher } from './delivery-dispatcher.ts';
import { createDeliveryWindows } from './delivery-windows.ts';
import { drainEndpoint } from './endpoint-drain.ts';
import type { DrainDeps, DrainEndpointInput, DrainEndpointResult } from './endpoint-drain.ts';
import { createEndpointWakes } from './endpoint-wakes.ts';
import { createWebhookSender } from './webhook-sender.ts';

export interface WebhookDeps extends Omit<DrainDeps, 'send' | 'windows'> {
  /** Has the endpoint's queue look soon. Never throws. */
  wakeEndpoint: (endpoint: EndpointRef) => Promise<void>;
  allowLoopback: boolean;
}

export interface DeliverPendingInput {
  merchantId: string;
  streamId: string;
  /** The calling workflow's clock, in real time: a retry is due by this clock. */
  nowAt: number;
  /** Ignored; callers of the release before this one set it. */
  handOver: boolean;
}

export interface DeliverPendingResult {
  remaining: number;
  nextDelayMs: number | null;
}

export interface WebhookActivities {
  /**
   * Sends what is due for one endpoint: of each stream in sequence order, of at most eight streams at
   * a time. Begins nothing after 20 s and is over within 40. Throws only when the database fails or
   * the secret cannot be opened.
   *
   * Idempotent: what is delivered is not sent again; what was sent by a process that died before
   * recording it is (at least once). Retryable always. Rule: D-54.
   */
  drainEndpoint(input: DrainEndpointInput): Promise<DrainEndpointResult>;
  /**
   * Has the dispatcher deliver a stream, and waits for a moment. What is left is the endpoint queues',
   * so it answers that nothing is: a `webhookStream` of a release before this one then ends.
   */
  deliverPending(input: DeliverPendingInput): Promise<DeliverPendingResult>;
}

/** How long a caller of `deliverPending` waits for endpoints that answer slowly. */
const FIRST_ROUND_MS = 3_000;

/** Everything in a process that sends webhooks; its parts share connections and delivery windows. */
export function createWebhookDelivery(deps: WebhookDeps): {
  dispatcher: DeliveryDispatcher;
  activities: WebhookActivities;
} {
  const { wakeEndpoint, allowLoopback, ...rest } = deps;
  const drainDeps: DrainDeps = {
    ...rest,
    send: createWebhookSender({ allowLoopback }),
    windows: createDeliveryWindows(LARGEST_WINDOW),
  };
  const wakes = createEndpointWakes(wakeEndpoint);
  const dispatcher = createDeliveryDispatcher({ ...drainDeps, wakes });
  return {
    dispatcher,
    activities: {
      drainEndpoint: (input) => drainEndpoint(drainDeps, input),
      async deliverPending({ merchantId, streamId, nowAt }) {
        await dispatcher.deliver({ merchantId, streamId, nowAt }, FIRST_ROUND_MS);
        return { remaining: 0, nextDelayMs: null };
      },
    },
  };
}
