import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { and, count, eq } from 'drizzle-orm';
import { expect, vi } from 'vitest';
import { createApp } from '../../api/http/frame.ts';
import { createFeedWaits } from '../../api/routes/events/waits.ts';
import { limitsPerSecond } from '../../api/http/caller.ts';
import { issueCredential } from '../../db/repositories/merchants/credentials.ts';
import { outboxEvents, webhookDeliveries } from '../../db/schema/webhooks.ts';
import { EVENT_TYPES } from '../../domain/events.ts';
import type { StreamRef } from '../../domain/events.ts';
import { endpointProblem } from '../../runtime/webhook-address.ts';
import { createWorkflowStarts } from '../../temporal/subscriptions/start.ts';
import { eventually } from './eventually.ts';
import { KEEP_ALIVE_MS, listen } from '../../tools/scripts/client/listen.ts';
import { LINKS } from './links.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';
import { createMerchantClient } from '../../tools/scripts/client/merchant-client.ts';
import { defaultDocumentCheck } from './document-check.ts';
import { startWebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';
import type { ReceivedWebhook } from '../../tools/scripts/client/webhook-receiver.ts';
import { declarationRows } from '../../db/repositories/customers/declarations.ts';
import { submitCard } from '../../temporal/cards.ts';
import { declarationTaker } from '../../temporal/declarations.ts';
import type { TestEnvironment } from './test-environment.ts';

/** An API process does not start with another one than that of the credentials in its database. */
export const PEPPER = 'pepper-of-the-test-shop-00000000000001';
const EVENT_SIGNER = 'whsec_dGhlIHRlc3Qgc2hvcCBzaWducyB3aXRoIHRoaXM=';
/** A time limit, not an expectation: events arrive within milliseconds. */
const NEWS_WITHIN_MS = 60_000;
/**
 * Time in ms for which the merchant repeats a request that is answered 503. On a busy machine a worker may accept a
 * command too late.
 */
const REPEATED_FOR_MS = 30_000;

export type Shop = Awaited<ReturnType<typeof openShop>>;

/**
 * Opens a merchant fixture: the API and the hosted pages on a real port, a merchant client, and a webhook
 * endpoint that is subscribed to every event type.
 */
export async function openShop(env: TestEnvironment) {
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS });
  const { url, close } = await listen(server);
  env.allowReturnTo(url);
  const { db, merchantId } = env;
  const app = createApp({
    db,
    feedWaits: createFeedWaits(),
    workflows: env.workflows,
    starts: createWorkflowStarts((ref) => env.workflows.start(ref)),
    orders: env.orders,
    submitCard: (page, paymentToken) => submitCard(env, page, paymentToken),
    takeDeclaration: declarationTaker({
      rows: declarationRows(db),
      workflows: env.workflows,
      wakeStream: (stream) => env.webhooks.wakeStream(stream),
      logger: env.logger,
    }),
    webhooks: env.webhooks,
    gatewaySubjects: env.gatewaySubjects,
    logger: env.logger,
    now: Date.now,
    random: randomBytes,
    publicUrl: url,
    homeLinks: [],
    checkoutExpiryMs: 24 * 3_600_000,
    rateLimits: limitsPerSecond(100),
    sessionKey: LINKS.sessionKey,
    credentialPeppers: [PEPPER],
    gateways: env.gateways,
    testCards: env.gateway.testCards,
    declineNext: (order) => env.gateway.declineNext(order),
    sealing: env.sealing,
    endpointProblem: (endpoint) =>
      endpointProblem(endpoint, { allowLoopback: true, sendsMails: true }),
  });
  const koa = app.callback();
  server.on('request', (request, response) => void koa(request, response));

  const nowAt = Date.now();
  const issued = await issueCredential(db, { merchantId, mode: 'test', pepper: PEPPER, nowAt });
  const client = { apiUrl: url, ...issued };
  const patience = { patienceMs: REPEATED_FOR_MS, isConflictFinal: true };
  const merchant = createMerchantClient({ ...client, ...patience });
  const receiver = await startWebhookReceiver({ secrets: [EVENT_SIGNER] });
  await merchant.post('/webhook', {
    endpoint: receiver.url,
    eventSigner: EVENT_SIGNER,
    subscribedEventTypes: EVENT_TYPES,
  });

  const receivedOf = (subscriptionId: string) =>
    receiver.received.filter(({ event }) => event['subscriptionId'] === subscriptionId);
  const read = new Map<string, number>();
  /** Advances a test clock to `to`, and waits until it has reached `to`. The API itself waits for 25 s. */
  const advanceClock = async (testClockId: string, to: number): Promise<void> => {
    const reached = { testClockId, status: 'READY', now: to };
    const answer = await merchant.post('/test-clock/advance', { testClockId, to });
    if (isDeepStrictEqual(answer, reached)) return;
    await eventually(async () =>
      expect(await merchant.get(`/test-clock/${testClockId}`)).toEqual(reached),
    );
  };

  return {
    url,
    /** Environment variables for a merchant's program. */
    variables: { API_URL: url, KEY_ID: issued.keyId, SECRET: issued.secret },
    merchant,
    /** Creates a subscription of 19.99 USD a month, 12 cycles, with these changes of its terms. */
    async subscribe(terms: object = {}) {
      const { subscriptionId, fwdUrl } = await merchant.post<{
        subscriptionId: string;
        fwdUrl: string;
      }>('/subscription/create', { ...MONTHLY, ...terms });
      const path = `/subscription/get-subscription/${subscriptionId}`;
      return {
        subscriptionId,
        fwdUrl,
        read: () => merchant.get<Record<string, unknown>>(path),
        /** Outcome and amount of every charge in the gateway's own records. */
        book: async () =>
          (await env.book({ merchantId, subscriptionId })).map(
            ({ outcome, amountMinor }) => `${outcome} ${amountMinor}`,
          ),
        declineNext: (code: string, times: number) =>
          merchant.post('/test-helpers/decline-next', { subscriptionId, code, count: times }),
      };
    },
    /** Creates a test clock that shows `now`. Returns its id, and a function that advances it. */
    async createClock(now: number) {
      const { testClockId } = await merchant.post<{ testClockId: string }>('/test-clock/create', {
        now,
      });
      return { testClockId, advance: (to: number) => advanceClock(testClockId, to) };
    },
    /** A merchant that sends each request once. */
    impatientMerchant: createMerchantClient(client),
    receiver,
    /**
     * Waits until `count` events of a subscription have arrived since the last call, at most 60 s. Returns all events
     * since the last call, one line each, also if there are fewer or more than `count`.
     */
    async news(subscriptionId: string, count: number): Promise<string[]> {
      const from = read.get(subscriptionId) ?? 0;
      await vi
        .waitUntil(() => receivedOf(subscriptionId).length >= from + count, {
          timeout: NEWS_WITHIN_MS,
          interval: 10,
        })
        .catch(() => undefined);
      const received = receivedOf(subscriptionId);
      read.set(subscriptionId, received.length);
      return received.slice(from).map(lineOf);
    },
    advanceClock,
    /** Expects that every event of a subscription was received exactly once, in sequence. */
    async expectAllDelivered(subscriptionId: string): Promise<void> {
      const stream = { merchantId, streamId: subscriptionId };
      await vi.waitFor(async () => expect(await countPending(env, stream)).toBe(0), {
        timeout: NEWS_WITHIN_MS,
        interval: 20,
      });
      const [written] = await db
        .select({ events: count() })
        .from(outboxEvents)
        .where(eq(outboxEvents.streamId, subscriptionId));
      const sequences = receivedOf(subscriptionId).map(({ event }) => event.sequence);
      expect(sequences).toEqual(Array.from({ length: written?.events ?? 0 }, (_, i) => i + 1));
    },
    /** Closes the servers. Fails when an event differs from the OpenAPI document. */
    async close(): Promise<void> {
      await receiver.close();
      await close();
      const check = defaultDocumentCheck();
      expect(receiver.received.flatMap(({ event }) => check.problemsOfEvent(event))).toEqual([]);
    },
  };
}

async function countPending({ db }: TestEnvironment, { streamId }: StreamRef): Promise<number> {
  const [row] = await db
    .select({ pending: count() })
    .from(webhookDeliveries)
    .where(and(eq(webhookDeliveries.streamId, streamId), eq(webhookDeliveries.state, 'PENDING')));
  return row?.pending ?? 0;
}

/**
 * A line such as `2027-02-28 09:30 subscription.cycle_charged ACTIVE 1999 USD, cycle 2, 10 left, next
 * 2027-03-31 09:30`. An invalid signature adds `NOT SIGNED`.
 */
function lineOf(webhook: ReceivedWebhook): string {
  const { event } = webhook;
  const isSigned = webhook.isStandardSignatureValid && webhook.isXpaySignatureValid;
  const { status, amount, currency, errorCode, cycleNumber, nextPaymentDate } = event;
  const { remainingCycleCount, nextRetryAt } = event;
  const facts = [
    `${minute(event.eventTime)} ${event.eventType} ${String(status)} ${String(amount)} ${String(currency)}`,
    ...(typeof errorCode === 'string' ? [errorCode] : []),
    ...(typeof cycleNumber === 'number' ? [`cycle ${cycleNumber}`] : []),
    ...(typeof cycleNumber === 'number' && typeof remainingCycleCount === 'number'
      ? [`${remainingCycleCount} left`]
      : []),
    ...(typeof nextRetryAt === 'number' ? [`retry ${minute(nextRetryAt)}`] : []),
    ...(typeof nextPaymentDate === 'number' ? [`next ${minute(nextPaymentDate)}`] : []),
    ...(isSigned ? [] : ['NOT SIGNED']),
  ];
  return facts.join(', ');
}

function minute(at: number): string {
  return new Date(at).toISOString().slice(0, 16).replace('T', ' ');
}
