import type { Db } from '../db/client.ts';
import type { RandomBytes } from '../domain/ids.ts';
import type { PublishedTestCard } from '../gateways/port.ts';
import type { Logger } from '../runtime/logger.ts';
import type { Sealing } from '../runtime/sealing.ts';
import type { PaymentWorkflows } from '../runtime/payment-workflows.ts';
import type { SubscriptionWorkflows } from '../runtime/subscription-workflows.ts';
import type { WebhookQueues } from '../runtime/webhook-queues.ts';
import type { WorkflowStarts } from '../runtime/workflow-starts.ts';
import type { RateLimits } from './middleware/rate-limit.ts';

/** Everything the API needs of the world; `main.ts` and the tests put it together. */
export interface ApiDeps {
  readonly db: Db;
  readonly workflows: SubscriptionWorkflows;
  readonly starts: Pick<WorkflowStarts, 'begin'>;
  readonly payments: PaymentWorkflows;
  readonly webhooks: Pick<WebhookQueues, 'wakeStream' | 'breakerClosed'>;
  readonly logger: Logger;
  /** Real time in epoch ms. */
  readonly now: () => number;
  readonly random: RandomBytes;
  /** Base of the hosted pages as a payer's browser sees it, without a trailing slash. */
  readonly publicUrl: string;
  readonly checkoutExpiryMs: number;
  /**
   * How many proxies of ours stand in front: that many entries of `X-Forwarded-For`, from the end, are
   * true. Default 0: none is looked at.
   */
  readonly trustedProxies?: number;
  readonly rateLimits: RateLimits;
  /** Longest wait for the subscriptions of a test clock to get where it was sent; default 25 s. */
  readonly clockWaitMs?: number;
  /** Signs the forms of hosted pages. */
  readonly sessionKey: string;
  /** Under which API secrets are hashed. */
  readonly credentialPepper: string;
  /** Where the hosted card form posts to, as the payer's browser sees it. */
  readonly tokeniserUrl: string;
  /** Shown on the page in test mode. */
  readonly testCards: readonly PublishedTestCard[];
  /** Makes webhook secrets unreadable at rest; each is bound to its configuration's id. */
  readonly sealing: Sealing;
  /** What is wrong with a webhook endpoint ("must be …"), or undefined. */
  readonly endpointProblem: (endpoint: string) => string | undefined;
}
