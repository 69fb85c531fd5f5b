import type { RequestTracer } from '../runtime/tracing.ts';
import type { Db } from '../db/client.ts';
import type { CardOutcome } from '../domain/card-outcome.ts';
import type { RandomBytes } from '../domain/ids.ts';
import type { ForcedDeclines, PublishedTestCard } from '../gateways/port.ts';
import type { EventSenders, GatewayRegistry } from '../gateways/registry.ts';
import type { Logger } from '../runtime/logger.ts';
import type { Sealing } from '../runtime/sealing.ts';
import type { CardPage } from '../temporal/cards.ts';
import type { DeclarationRef } from '../temporal/declarations.ts';
import type { GatewaySubjects } from '../temporal/gateway-subjects.ts';
import type { Orders } from '../temporal/orders.ts';
import type { SubscriptionWorkflows } from '../temporal/subscriptions/workflows.ts';
import type { WebhookQueues } from '../temporal/webhook-queues.ts';
import type { WorkflowStarts } from '../temporal/subscriptions/start.ts';
import type { FeedWaits } from './routes/events/waits.ts';

export type AnswerObserver = (labels: { route: string; status: string }, seconds: number) => void;

export interface HomeLink {
  readonly url: string;
  readonly text: string;
}

/** Limits of one merchant in one API process. A time window starts with its first request. */
export interface RateLimits {
  readonly windowSeconds: number;
  readonly requests: number;
  readonly readsOfOneSubscription: number;
}

export interface ApiDeps {
  readonly db: Db;
  readonly workflows: SubscriptionWorkflows;
  readonly starts: Pick<WorkflowStarts, 'begin'>;
  readonly orders: Pick<Orders, 'execute' | 'recheck'>;
  /** Submits a card that a payer entered, once for each token. */
  readonly submitCard: (page: CardPage, paymentToken: string) => Promise<CardOutcome>;
  /** Handles a stored declaration in the background. Never throws: the sweep repeats it. */
  readonly takeDeclaration: (ref: DeclarationRef) => void;
  readonly webhooks: Pick<WebhookQueues, 'wakeStream' | 'breakerClosed' | 'ping'>;
  readonly feedWaits: Pick<FeedWaits, 'poll'>;
  readonly gatewaySubjects: Pick<GatewaySubjects, 'wake'>;
  readonly logger: Logger;
  /** Called after each request with the route's pattern, or `none`. Default: nothing. */
  readonly onAnswer?: AnswerObserver;
  readonly trace?: RequestTracer;
  /** Real time in epoch ms. */
  readonly now: () => number;
  readonly random: RandomBytes;
  /** Public base URL of the API and the hosted pages, without a trailing slash. */
  readonly publicUrl: string;
  /** Further links of the page at `/`, for example to Temporal's Web UI. */
  readonly homeLinks: readonly HomeLink[];
  readonly checkoutExpiryMs: number;
  /**
   * Number of our own proxies in front of the API. The API trusts this many entries at the end of
   * `X-Forwarded-For`. Default 0: the header is ignored.
   */
  readonly trustedProxies?: number;
  readonly rateLimits: RateLimits;
  /** Milliseconds until the request's signal `late` aborts, then until the 503. Default: 32 s and 3 s. */
  readonly deadlineMs?: readonly [lateAfter: number, grace: number];
  /** Longest wait of `POST /test-clock/advance` for the clock's subscriptions, in ms. Default: 25 s. */
  readonly clockWaitMs?: number;
  /** HMAC key for the forms, the cookies and the signed links of hosted pages. */
  readonly sessionKey: string;
  /** HMAC keys with which API secrets are hashed, the current one first. */
  readonly credentialPeppers: readonly string[];
  readonly gateways: GatewayRegistry & EventSenders;
  /**
   * Makes the sandbox gateway decline later charges. Throws `service_unavailable` if the gateway does not
   * answer.
   */
  readonly declineNext: (order: ForcedDeclines) => Promise<void>;
  readonly testCards: readonly PublishedTestCard[];
  /** Encrypts webhook secrets for the database. Each ciphertext is bound to its configuration's id. */
  readonly sealing: Sealing;
  /** Returns why a webhook endpoint is refused ("must be …"); undefined if it is accepted. */
  readonly endpointProblem: (endpoint: string) => string | undefined;
}
