import type { EndpointRef } from '../db/repositories/webhooks/deliveries.ts';
import { LARGEST_WINDOW, MERCHANT_WINDOW } from '../domain/endpoint-breaker.ts';
import { createDeliveryDispatcher } from './delivery-dispatcher.ts';
import type { DeliveryDispatcher } from './delivery-dispatcher.ts';
import { createDeliveryWindows } from './delivery-windows.ts';
import { drainEndpoint } from './endpoint-drain.ts';
import type { DrainDeps, DrainEndpointInput, DrainEndpointResult } from './endpoint-drain.ts';
import { createEndpointWakes } from './endpoint-wakes.ts';
import { createWebhookSender } from './webhook-sender.ts';

export interface WebhookDeps extends Omit<DrainDeps, 'send' | 'windows'> {
  /** Wakes the endpoint queue. Never throws. */
  wakeEndpoint: (endpoint: EndpointRef) => Promise<void>;
  allowLoopback: boolean;
}

export interface DeliverPendingInput {
  merchantId: string;
  streamId: string;
  /** The workflow's real time, which decides which retries are due. */
  nowAt: number;
  /** Ignored. Callers of an earlier release set this field. */
  handOver: boolean;
}

export interface DeliverPendingResult {
  remaining: number;
  nextDelayMs: number | null;
}

export interface WebhookActivities {
  /**
   * Sends the due deliveries of one endpoint: in sequence order for each stream, of at most eight streams
   * at a time. No request begins after 20 s, and the drain ends within 40 s. Throws only if the database
   * fails or the secret cannot be decrypted.
   *
   * Delivery is at least once: if the process dies before it records an attempt, the delivery is sent
   * again. A retry of the activity is safe. Rule: D-54.
   */
  drainEndpoint(input: DrainEndpointInput): Promise<DrainEndpointResult>;
  /**
   * For subscription runs of earlier releases. Submits the stream to the dispatcher and waits at most 3 s for
   * the first delivery attempts.
   */
  deliverPending(input: DeliverPendingInput): Promise<DeliverPendingResult>;
}

/** Longest wait, in ms, of a caller of `deliverPending` for endpoints that answer slowly. */
const FIRST_ROUND_MS = 3_000;

/** Creates the webhook delivery of a process. Dispatcher and activities share connections and limits. */
export function createWebhookDelivery(deps: WebhookDeps): {
  dispatcher: DeliveryDispatcher;
  activities: WebhookActivities;
} {
  const { wakeEndpoint, allowLoopback, ...rest } = deps;
  const drainDeps: DrainDeps = {
    ...rest,
    send: createWebhookSender({ allowLoopback }),
    windows: createDeliveryWindows({ ofEndpoint: LARGEST_WINDOW, ofMerchant: MERCHANT_WINDOW }),
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
