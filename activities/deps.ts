import type { Db } from '../db/client.ts';
import type { EndpointRef } from '../domain/endpoint-breaker.ts';
import type { StreamRef } from '../domain/events.ts';
import type { RenewalPlaces } from '../domain/subscription/renewal-places.ts';
import type { SubscriptionRef } from '../domain/subscription/state.ts';
import type { GatewayRegistry } from '../gateways/registry.ts';
import type { Logger } from '../runtime/logger.ts';
import type { LinkSettings } from '../runtime/payer-links.ts';
import type { GatewaySubjects } from '../temporal/gateway-subjects.ts';
import type { Orders } from '../temporal/orders.ts';
import type { SubscriptionWorkflows } from '../temporal/subscriptions/workflows.ts';
import type { WebhookActivities } from './webhooks/delivery.ts';

/** Time limits of one activity for its requests to the gateway about one charge or refund. */
export interface SendBudget {
  /** ms after the start in which a request may begin; 15 s less the client's timeout at most. */
  readonly newSendsForMs: number;
  /** Pause between two requests, in ms. */
  readonly pauseMs: number;
}

export interface ActivityDeps {
  db: Db;
  logger: Pick<Logger, 'warn'>;
  gateways: GatewayRegistry;
  links: LinkSettings;
  orders: Orders;
  subscriptionWorkflows: SubscriptionWorkflows;
  gatewaySubjects: Pick<GatewaySubjects, 'ensureRunning'>;
  webhooks: WebhookActivities;
  /** Chooses the delays of renewals. */
  places: RenewalPlaces;
  /** Must fit the gateway client's timeout. Default: requests begin within 6 s, with pauses of 1 s. */
  sendBudget?: SendBudget;
  /** Time in ms for which records past their use are kept. Default: 30 days. */
  retentionMs?: number;
  /** Wakes the endpoint's workflow. Never throws. */
  wakeEndpoint(endpoint: EndpointRef): Promise<void>;
  /** Requests the delivery of the stream's pending webhook events. Never throws. */
  wakeStream(stream: StreamRef): Promise<void>;
  /** Gives the run, for which no payer waits any more, the priority of a renewal, 2 s later. Never throws. */
  endPayerPriority(ref: SubscriptionRef): void;
}

export type OrderDeps = Pick<ActivityDeps, 'db' | 'gateways' | 'sendBudget' | 'wakeStream'>;
export type ChargingDeps = OrderDeps &
  Pick<ActivityDeps, 'links' | 'places' | 'endPayerPriority'> & {
    orders: Pick<Orders, 'ensureRunning'>;
  };
