import { randomBytes, randomUUID } from 'node:crypto';
import { temporal } from '@temporalio/proto';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import type { Client } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { eq } from 'drizzle-orm';
import { expect, inject, vi } from 'vitest';
import { withHeartbeats } from '../../activities/heartbeats.ts';
import { createActivities } from '../../activities/index.ts';
import type { Activities } from '../../activities/index.ts';
import { createDb } from '../../db/client.ts';
import type { Db } from '../../db/client.ts';
import { createSubscription } from '../../db/repositories/create-subscription.ts';
import { paymentRows } from '../../db/repositories/payment-charges.ts';
import { subscriptionRows } from '../../db/repositories/subscriptions.ts';
import {
  countBehind,
  insertTestClock,
  sendTestClock,
  subscriptionsBehind,
} from '../../db/repositories/test-clocks.ts';
import { createWebhookConfig } from '../../db/repositories/webhook-configs.ts';
import { customers } from '../../db/schema/customers.ts';
import { merchants } from '../../db/schema/merchants.ts';
import { outboxEvents } from '../../db/schema/outbox-events.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { EVENT_TYPES } from '../../domain/events.ts';
import { newId, randomToken } from '../../domain/ids.ts';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import type { RetryPlan } from '../../domain/retry-plan.ts';
import { createSandboxClient } from '../../gateways/sandbox/client.ts';
import { createSandboxGateway } from '../../gateways/sandbox/server.ts';
import { createLogger } from '../../runtime/logger.ts';
import { createSealing } from '../../runtime/sealing.ts';
import { createPaymentWorkflows } from '../../runtime/payment-workflows.ts';
import { createSubscriptionWorkflows } from '../../runtime/subscription-workflows.ts';
import type { SubscriptionRef, SubscriptionState, Terms } from '../../domain/subscription/state.ts';
import { createTestDatabase } from './database.ts';

const GATEWAY_KEY = 'gateway-key-of-the-test-world-00000001';
const RETURN_ORIGIN = 'http://127.0.0.1:8080';
const DAY_MS = 86_400_000;

const { INDEXED_VALUE_TYPE_KEYWORD: KEYWORD, INDEXED_VALUE_TYPE_INT: INT } =
  temporal.api.enums.v1.IndexedValueType;
const { INDEXED_VALUE_TYPE_DATETIME: DATETIME } = temporal.api.enums.v1.IndexedValueType;

let isRuntimeInstalled = false;

/** Must come before any server or worker of the process. */
function installRuntime(): void {
  if (isRuntimeInstalled) return;
  Runtime.install({ logger: new DefaultLogger('ERROR'), shutdownSignals: [] });
  isRuntimeInstalled = true;
}

/** A Temporal server whose time jumps while everybody waits. */
export async function startTimeSkippingServer(): Promise<TestWorkflowEnvironment> {
  installRuntime();
  const env = await TestWorkflowEnvironment.createTimeSkipping({
    server: { executable: { type: 'existing-path', path: inject('testServerPath') } },
  });
  await env.connection.operatorService.addSearchAttributes({
    namespace: 'default',
    searchAttributes: {
      MerchantId: KEYWORD,
      SubscriptionStatus: KEYWORD,
      NextBillingAt: DATETIME,
      BillingCycle: INT,
      LastOutcome: KEYWORD,
    },
  });
  return env;
}

export interface TemporalPlace {
  client: Client;
  nativeConnection: NativeConnection;
}

/** The run's Temporal dev server, in real time. */
export async function connectDevServer(): Promise<TemporalPlace & { close(): Promise<void> }> {
  installRuntime();
  const { Client, Connection } = await import('@temporalio/client');
  const address = inject('temporalAddress');
  const connection = await Connection.connect({ address });
  const nativeConnection = await NativeConnection.connect({ address });
  const client = new Client({ connection });
  const close = async () => {
    await connection.close();
    await nativeConnection.close();
  };
  return { client, nativeConnection, close };
}

export interface NewLife {
  terms?: Partial<Terms>;
  createdAt: number;
  checkoutExpiresAt?: number;
  testClockId?: string | null;
}

export type World = Awaited<ReturnType<typeof createWorld>>;

/**
 * Everything a subscription lives in, real: Postgres, the sandbox gateway over HTTP, workers on the
 * given Temporal server with the bundle that production runs. One per test file.
 */
export async function createWorld(
  place: TemporalPlace,
  options: {
    retryPlan?: RetryPlan;
    /** Puts something between the server and the real activities, e.g. a failure. */
    wrap?: (activities: Activities) => Activities;
    /** False: nobody here runs activities; processes with this world's `environment` do. */
    runsActivities?: boolean;
    /** A Postgres of one's own instead of the run's: its administrative database. */
    postgresUrl?: string;
    /** How long the gateway may take to answer those who run activities here, in ms. */
    gatewayTimeoutMs?: number;
  } = {},
) {
  const database = await createTestDatabase(options.postgresUrl);
  const { db, close: closeDb } = createDb({
    url: database.url,
    poolSize: 10,
    applicationName: 'test-world',
  });
  const returnOrigins = [RETURN_ORIGIN];
  const gatewayServer = await createSandboxGateway({
    databaseUrl: database.url,
    apiKey: GATEWAY_KEY,
    allowedReturnOrigins: returnOrigins,
  });
  const gateway = createSandboxClient({
    url: gatewayServer.url,
    publicUrl: gatewayServer.url,
    apiKey: GATEWAY_KEY,
    timeoutMs: options.gatewayTimeoutMs ?? 2_000,
  });
  const taskQueuePrefix = `${randomUUID()}-`;
  const logger = createLogger({ name: 'world', level: 'silent' });
  const workflows = createSubscriptionWorkflows({
    client: place.client,
    rows: subscriptionRows(db),
    taskQueuePrefix,
    logger,
  });
  const payments = createPaymentWorkflows({
    client: place.client,
    rows: paymentRows(db),
    taskQueuePrefix,
  });
  const encryptionKey = randomBytes(32);
  const sealing = createSealing(encryptionKey);
  const activities = createActivities({
    db,
    gateway,
    reviver: workflows,
    payments,
    sealing,
    wakeStream: (stream) => workflows.wakeStream(stream),
    allowLoopback: true,
  });
  const wrapped = withHeartbeats(options.wrap?.(activities) ?? activities);
  const merchantId = newId('mer', Date.now(), randomBytes);
  await db.insert(merchants).values({
    id: merchantId,
    name: 'Test merchant',
    mode: 'test',
    settings: { retryPlan: options.retryPlan ?? DEFAULT_RETRY_PLAN },
    createdAt: Date.now(),
  });

  const startWorkers = async () => {
    const shared = { connection: place.nativeConnection, namespace: 'default' };
    const activityQueues = options.runsActivities === false ? [] : ['charges', 'webhooks'];
    const workers = await Promise.all([
      Worker.create({
        ...shared,
        taskQueue: `${taskQueuePrefix}billing`,
        workflowBundle: { codePath: inject('workflowBundlePath') },
        // How long a workflow waits for a worker that was stopped before another may take it.
        stickyQueueScheduleToStartTimeout: '1s',
      }),
      ...activityQueues.map((queue) =>
        Worker.create({ ...shared, taskQueue: taskQueuePrefix + queue, activities: wrapped }),
      ),
    ]);
    const running = Promise.all(workers.map((worker) => worker.run()));
    return {
      stop: async () => {
        for (const worker of workers) worker.shutdown();
        await running;
      },
    };
  };
  let workers: Awaited<ReturnType<typeof startWorkers>> | null = await startWorkers();

  return {
    db,
    gateway,
    sealing,
    logger,
    workflows,
    payments,
    merchantId,
    taskQueuePrefix,
    databaseUrl: database.url,
    client: place.client,
    gatewayPlace: { url: gatewayServer.url, key: GATEWAY_KEY },
    /** Settings of a process that works in this world. */
    environment: {
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: inject('temporalAddress'),
      TASK_QUEUE_PREFIX: taskQueuePrefix,
      WORKFLOW_BUNDLE: inject('workflowBundlePath'),
      GATEWAY_URL: gatewayServer.url,
      GATEWAY_KEY,
      ENCRYPTION_KEY: encryptionKey.toString('base64'),
      WEBHOOK_ALLOW_LOOPBACK: 'true',
      MAINTENANCE: 'off',
      LOG_LEVEL: 'warn',
    },
    async stopWorkers() {
      await workers?.stop();
      workers = null;
    },
    async startWorkers() {
      workers ??= await startWorkers();
    },
    /** A subscription as the API writes it, its workflow started. */
    create: (life: NewLife) =>
      createLife(db, merchantId, life).then(async (ref) => {
        await workflows.start(ref);
        return ref;
      }),
    createRowOnly: (life: NewLife) => createLife(db, merchantId, life),
    /** What a browser gets for a card: a one-time token. */
    token: (cardNumber = '4242424242424242') => tokenise(gatewayServer.url, cardNumber),
    /** Sends every event to `url` from now on. */
    subscribe: async (url: string, eventSigner: string) => {
      const configId = newId('whc', Date.now(), randomBytes);
      const sealedSigner = sealing.seal(eventSigner, configId);
      const eventTypes = [...EVENT_TYPES];
      await createWebhookConfig(db, {
        merchantId,
        configId,
        url,
        sealedSigner,
        eventTypes,
        at: Date.now(),
      });
      return configId;
    },
    activities,
    /** Lets the card form send browsers back to pages of `origin`. */
    allowReturnTo: (origin: string) => returnOrigins.push(origin),
    /** A test clock standing at `nowAt`. */
    createClock: async (nowAt: number) => {
      const id = newId('clk', Date.now(), randomBytes);
      await insertTestClock(db, { merchantId, id, targetAt: nowAt, createdAt: Date.now() });
      return id;
    },
    /** Sends the clock on and waits until every subscription that lives by it is there. */
    advance: async (id: string, to: string | number) => {
      const targetAt = typeof to === 'number' ? to : Date.parse(to);
      const clock = { merchantId, id, targetAt, createdAt: 0 };
      await sendTestClock(db, clock, targetAt);
      for (const subscriptionId of await subscriptionsBehind(db, clock)) {
        await workflows.advanceClock({ merchantId, subscriptionId }, targetAt);
      }
      await vi.waitFor(async () => expect(await countBehind(db, clock)).toBe(0), {
        timeout: 60_000,
        interval: 20,
      });
    },
    state: (ref: SubscriptionRef) => stateOf(db, ref),
    events: (ref: SubscriptionRef) => eventsOf(db, ref),
    /** The gateway's own book of a subscription. */
    book: (ref: SubscriptionRef) =>
      control(
        gatewayServer.url,
        'GET',
        `/control/charges?subscriptionId=${ref.subscriptionId}`,
      ).then(({ charges }) => charges),
    control: (method: string, path: string, body?: unknown) =>
      control(gatewayServer.url, method, path, body),
    async close() {
      await workers?.stop();
      await gateway.close();
      await gatewayServer.close();
      await closeDb();
      await database.drop();
    },
  };
}

async function createLife(db: Db, merchantId: string, life: NewLife): Promise<SubscriptionRef> {
  const { createdAt } = life;
  const terms: Terms = {
    amountMinor: 1_999,
    currency: 'USD',
    interval: 'MONTH',
    intervalCount: 1,
    cycleCount: 12,
    upfrontAmountMinor: null,
    trial: null,
    ...life.terms,
  };
  const id = (prefix: 'cus' | 'sub' | 'in' | 'cs') => newId(prefix, createdAt, randomBytes);
  const customerId = id('cus');
  const subscriptionId = id('sub');
  const customerDetails = { name: 'Ada Example', email: 'ada@example.com' };
  await db.transaction(async (tx) => {
    await tx
      .insert(customers)
      .values({ merchantId, id: customerId, details: customerDetails, createdAt });
    await createSubscription(
      tx,
      {
        subscriptionId,
        merchantId,
        customerId,
        terms,
        createdAt,
        checkoutExpiresAt: life.checkoutExpiresAt ?? createdAt + DAY_MS,
        testClockId: life.testClockId ?? null,
        firstIntentId: terms.trial ? null : id('in'),
      },
      {
        customerDetails,
        receiptId: null,
        description: null,
        callbackUrl: 'https://merchant.example/back',
        cancelUrl: null,
        metadata: null,
        productPage: null,
        phoneNumberRequired: false,
      },
      { id: id('cs'), token: randomToken(randomBytes) },
    );
  });
  return { merchantId, subscriptionId };
}

const SESSION = 'cs_of_the_test_world';

async function tokenise(gatewayUrl: string, number: string): Promise<string> {
  const response = await fetch(`${gatewayUrl}/tokenise`, {
    method: 'POST',
    redirect: 'manual',
    body: new URLSearchParams({
      name: 'Ada Example',
      number,
      expiry: '12/34',
      cvc: number.startsWith('37') ? '1234' : '123',
      session: SESSION,
      return_url: `${RETURN_ORIGIN}/back`,
    }),
  });
  const location = response.headers.get('location');
  const token = location && new URL(location).searchParams.get('payment_token');
  if (!token) throw new Error(`no token for ${number}: ${response.status} ${location ?? ''}`);
  return token;
}

/** The command that a payer's return from the card form becomes. */
export function checkoutCommand(paymentToken: string) {
  return {
    kind: 'completeCheckout',
    commandId: paymentToken,
    paymentToken,
    checkoutSessionId: SESSION,
  } as const;
}

export function newMethodCommand(paymentToken: string) {
  return { ...checkoutCommand(paymentToken), kind: 'replacePaymentMethod' } as const;
}

async function stateOf(db: Db, ref: SubscriptionRef): Promise<SubscriptionState> {
  const [row] = await db
    .select({ state: subscriptions.state })
    .from(subscriptions)
    .where(eq(subscriptions.id, ref.subscriptionId));
  if (!row) throw new Error(`no subscription ${ref.subscriptionId}`);
  return row.state;
}

async function eventsOf(db: Db, ref: SubscriptionRef): Promise<Record<string, unknown>[]> {
  const rows = await db
    .select({ body: outboxEvents.body })
    .from(outboxEvents)
    .where(eq(outboxEvents.streamId, ref.subscriptionId))
    .orderBy(outboxEvents.sequence);
  return rows.map((row) => JSON.parse(row.body) as Record<string, unknown>);
}

/** One line of the gateway's own book. */
export interface BookedCharge {
  key: string;
  amountMinor: number;
  outcome: string;
  code: string | null;
  sentCount: number;
}

async function control(
  gatewayUrl: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ charges: BookedCharge[] }> {
  const response = await fetch(gatewayUrl + path, {
    method,
    headers: { authorization: `Bearer ${GATEWAY_KEY}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as { charges: BookedCharge[] };
}
