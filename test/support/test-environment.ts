import { LINKS } from './links.ts';
import { PLACES } from './places.ts';
import type { RenewalPlaces } from '../../domain/subscription/renewal-places.ts';
import { randomBytes, randomUUID } from 'node:crypto';
import { Client } from '@temporalio/client';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { sql } from 'drizzle-orm';
import { expect, inject } from 'vitest';
import { activityInterceptor } from '../../activities/interceptors.ts';
import { createMerchantGateways } from '../../gateways/merchant-gateways.ts';
import type { Processor } from '../../gateways/processor.ts';
import type { SendBudget } from '../../activities/deps.ts';
import { createActivities } from '../../activities/index.ts';
import type { Activities } from '../../activities/index.ts';
import { createMailSender } from '../../activities/mails/sender.ts';
import type { MailSettings } from '../../activities/mails/sender.ts';
import { createWebhookDelivery } from '../../activities/webhooks/delivery.ts';
import { createDb } from '../../db/client.ts';
import { endpointsOf } from '../../db/repositories/webhooks/deliveries.ts';
import { gatewayRows } from '../../db/repositories/merchants/gateways.ts';
import { orderRows } from '../../db/repositories/payments/charges.ts';
import { subscriptionRows } from '../../db/repositories/subscriptions/row.ts';
import {
  countBehind,
  insertTestClock,
  sendTestClock,
  subscriptionsBehind,
} from '../../db/repositories/merchants/test-clocks.ts';
import { createWebhookConfig } from '../../db/repositories/webhooks/configs.ts';
import { merchants } from '../../db/schema/merchants.ts';
import { EVENT_TYPES } from '../../domain/events.ts';
import { newId } from '../../domain/ids.ts';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import type { RetryPlan } from '../../domain/retry-plan.ts';
import { createSandboxClient } from '../../gateways/sandbox/client.ts';
import { createFaultySandbox } from '../../tools/faulty-sandbox/server.ts';
import { QUEUES } from '../../runtime/config.ts';
import type { QueueName } from '../../runtime/config.ts';
import { createLogger } from '../../runtime/logger.ts';
import { dataConverter } from '../../runtime/payload-digest.ts';
import { createSealing } from '../../runtime/sealing.ts';
import { createGatewaySubjects } from '../../temporal/gateway-subjects.ts';
import { createOrders } from '../../temporal/orders.ts';
import { createSubscriptionWorkflows } from '../../temporal/subscriptions/workflows.ts';
import type {
  CommandAnswer,
  SubscriptionWorkflows,
} from '../../temporal/subscriptions/workflows.ts';
import { workerOptionsOf } from '../../runtime/worker-options.ts';
import { WorkflowTaskSlots } from '../../runtime/workflow-task-slots.ts';
import { WORKFLOW_QUEUE } from '../../workflows/messages.ts';
import { createWebhookQueues } from '../../temporal/webhook-queues.ts';
import type { Command } from '../../domain/subscription/commands.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import type { ControlMethod } from '../../cli/verify/gateway-control.ts';
import { RETURN_ORIGIN, tokenise } from './card-tokens.ts';
import { createTestDatabase } from './database.ts';
import { eventually } from './eventually.ts';
import { controlGateway, GATEWAY_KEY } from './gateway-control.ts';
import { eventsOf, insertSubscription, stateOf, timelineOf } from './subscriptions.ts';
import type { NewSubscription } from './subscriptions.ts';
import type { TemporalPlace } from './temporal-servers.ts';
import { untilAccepted } from './until-accepted.ts';

/**
 * The send budget is short, because a test with an unknown outcome waits until the whole budget is used up.
 */
const SEND_BUDGET: SendBudget = { newSendsForMs: 2_000, pauseMs: 100 };

/**
 * Timeout of the gateway client in ms. The timeout is long, because the gateway on a busy machine needs seconds to
 * answer. The timeout plus the send budget is less than an activity's timeout of 15 s.
 */
const GATEWAY_TIMEOUT_MS = 8_000;

/** The time-skipping server puts no task that a sticky queue does not take on the shared queue before its timeout. */
const SLOTS = { type: 'fixed-size', numSlots: 100 } as const;
const WITH_STICKY_QUEUE = {
  tuner: {
    workflowTaskSlotSupplier: SLOTS,
    activityTaskSlotSupplier: SLOTS,
    localActivityTaskSlotSupplier: SLOTS,
    nexusTaskSlotSupplier: SLOTS,
  },
  nonStickyToStickyPollRatio: 0.2,
  stickyQueueScheduleToStartTimeout: '1s',
} as const;

/** Options for tests in which a charge reaches the gateway after the gateway client's timeout. */
export const LATE_ARRIVALS = {
  gatewayTimeoutMs: 2_000,
  sendBudget: { newSendsForMs: 4_000, pauseMs: 100 },
};

export type TestEnvironment<Server extends TemporalPlace = TemporalPlace> = Awaited<
  ReturnType<typeof createEnvironment<Server>>
>;
export type TimeSkippingEnvironment = TestEnvironment<TestWorkflowEnvironment>;

/**
 * Creates a complete test environment: a Postgres database, the sandbox gateway over HTTP, and workers on the
 * given Temporal server with the production workflow bundle.
 */
export async function createEnvironment<Server extends TemporalPlace>(
  server: Server,
  options: {
    retryPlan?: RetryPlan;
    /** Wraps the real activities, for example with failures. */
    wrap?: (activities: Activities) => Activities;
    /** False: this process runs workflows only. Other processes with `variables` run the activities. */
    runsActivities?: boolean;
    /**
     * False: the workflow workers in this process refuse local activities, which end after 3 s. Each activity then runs
     * on its task queue, for up to 15 s.
     */
    runsLocally?: boolean;
    /** The URL of the administrative database of another Postgres server. Default: the test run's server. */
    postgresUrl?: string;
    /** The gateway client's timeout for activities in this process, in ms. */
    gatewayTimeoutMs?: number;
    /** The address of a Stripe double, for merchants with an account there. */
    stripeUrl?: string;
    /** Default: those of the product. */
    processors?: readonly Processor[];
    /** Called before each statement, BEGIN and COMMIT of activities in this process. */
    onStatement?: () => void;
    onPayerPriorityEnd?: (ref: SubscriptionRef) => void;
    /** The send budget of activities in this process. */
    sendBudget?: SendBudget;
    /** Default: so much room that no renewal is delayed. */
    places?: RenewalPlaces;
    /** Default: no mail server. */
    mail?: MailSettings;
  } = {},
) {
  const database = await createTestDatabase(options.postgresUrl);
  const { db, close: closeDb } = createDb({
    url: database.url,
    poolSize: 10,
    applicationName: 'test-environment',
  });
  const { onStatement, mail = null } = options;
  const counted =
    onStatement &&
    createDb({
      url: database.url,
      poolSize: 10,
      applicationName: 'test-activities',
      beforeEach: onStatement,
    });
  const returnOrigins = [RETURN_ORIGIN];
  const gatewayServer = await createFaultySandbox({
    databaseUrl: database.url,
    apiKey: GATEWAY_KEY,
    allowedReturnOrigins: returnOrigins,
  });
  const gateway = createSandboxClient({
    url: gatewayServer.url,
    publicUrl: gatewayServer.url,
    apiKey: GATEWAY_KEY,
    timeoutMs: options.gatewayTimeoutMs ?? GATEWAY_TIMEOUT_MS,
  });
  const taskQueuePrefix = `${randomUUID()}-`;
  // The client of the time-skipping server skips time while it waits for a result. A waiting API must not
  // skip time, so the API has its own client.
  const client = new Client({ connection: server.client.connection, dataConverter });
  const logger = createLogger({ name: 'test', level: 'silent' });
  const workflows = createSubscriptionWorkflows({
    client,
    rows: subscriptionRows(db),
    taskQueuePrefix,
    logger,
  });
  const orders = createOrders({
    client,
    rows: orderRows(db),
    taskQueuePrefix,
    logger,
  });
  const gatewaySubjects = createGatewaySubjects({ client, taskQueuePrefix, logger });
  const encryptionKey = randomBytes(32);
  const sealing = createSealing([encryptionKey]);
  const gateways = createMerchantGateways({
    sandbox: gateway,
    ...gatewayRows(db),
    sealing,
    timeoutMs: options.gatewayTimeoutMs ?? GATEWAY_TIMEOUT_MS,
    doubleUrls: { stripe: options.stripeUrl },
    ...(options.processors && { processors: options.processors }),
  });
  const webhooks = createWebhookQueues({
    client,
    taskQueuePrefix,
    logger,
    endpointsOf: (stream) => endpointsOf(db, stream, Date.now()),
  });
  const delivery = createWebhookDelivery({
    db,
    sealing,
    wakeEndpoint: webhooks.wakeEndpoint,
    allowLoopback: true,
    mails: mail && createMailSender({ db, links: LINKS, mail }),
  });
  const activities = createActivities({
    db: counted?.db ?? db,
    logger,
    gateways,
    links: LINKS,
    places: options.places ?? PLACES,
    subscriptionWorkflows: workflows,
    orders,
    gatewaySubjects,
    sendBudget: options.sendBudget ?? SEND_BUDGET,
    webhooks: delivery.activities,
    wakeEndpoint: webhooks.wakeEndpoint,
    wakeStream: async (stream) => void delivery.deliver(stream),
    endPayerPriority: (ref) => {
      options.onPayerPriorityEnd?.(ref);
      void workflows.endPayerPriority(ref);
    },
  });
  const faulty = options.wrap?.(activities) ?? activities;
  const merchantId = newId('mer', Date.now(), randomBytes);
  await db.insert(merchants).values({
    id: merchantId,
    name: 'Test merchant',
    mode: 'test',
    settings: { retryPlan: options.retryPlan ?? DEFAULT_RETRY_PLAN },
    createdAt: Date.now(),
  });

  const refusesLocal = options.runsActivities === false || options.runsLocally === false;
  const activitiesOn = (queue: QueueName) =>
    refusesLocal && queue === WORKFLOW_QUEUE ? refusing(faulty) : faulty;
  const startWorkers = async () => {
    const queues = options.runsActivities === false ? ([WORKFLOW_QUEUE] as const) : QUEUES;
    const workers = await Promise.all(
      queues.map((queue) =>
        Worker.create({
          ...workerOptionsOf(queue, {
            taskQueuePrefix,
            activities: activitiesOn(queue),
            activityInterceptor: activityInterceptor(() => undefined),
            workflowBundle: { codePath: inject('workflowBundlePath') },
            workflowTaskSlots: new WorkflowTaskSlots(),
            deployment: null,
          }),
          ...(server instanceof TestWorkflowEnvironment &&
            queue === WORKFLOW_QUEUE &&
            WITH_STICKY_QUEUE),
          connection: server.nativeConnection,
          namespace: 'default',
        }),
      ),
    );
    const running = Promise.all(workers.map((worker) => worker.run()));
    return {
      stop: async () => {
        for (const worker of workers) worker.shutdown();
        await running;
      },
    };
  };
  /** Sets the clock's target and signals the subscriptions on the clock, without waiting for them. */
  const sendClock = async (id: string, targetAt: number) => {
    const clock = { merchantId, id, targetAt, createdAt: 0 };
    await sendTestClock(db, clock, targetAt);
    for (const subscriptionId of await subscriptionsBehind(db, clock)) {
      await workflows.advanceClock({ merchantId, subscriptionId }, targetAt);
    }
    return clock;
  };
  const control = (method: ControlMethod, path: string, body?: object) =>
    controlGateway(gatewayServer.url, method, path, body);
  let workers: Awaited<ReturnType<typeof startWorkers>> | null = await startWorkers();
  /**
   * Starts the subscription's workflow until Temporal confirms the start. One start waits 1 s for Temporal. The sweep
   * counts a start without a confirmation as a repair.
   */
  const confirmStart = (ref: SubscriptionRef): Promise<void> =>
    eventually(async () => expect(await workflows.start(ref)).toBe(true));

  return {
    db,
    gateway,
    gateways,
    sealing,
    logger,
    workflows,
    orders,
    gatewaySubjects,
    webhooks,
    merchantId,
    taskQueuePrefix,
    databaseUrl: database.url,
    server,
    client: server.client,
    gatewayPlace: { url: gatewayServer.url, key: GATEWAY_KEY },
    /** Environment variables for a process in this test environment. */
    variables: {
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: inject('temporalAddress'),
      TASK_QUEUE_PREFIX: taskQueuePrefix,
      WORKFLOW_BUNDLE: inject('workflowBundlePath'),
      GATEWAY_URL: gatewayServer.url,
      GATEWAY_KEY,
      STRIPE_API_URL: options.stripeUrl ?? '',
      ENCRYPTION_KEY: encryptionKey.toString('base64'),
      SESSION_KEY: LINKS.sessionKey,
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
    /** Creates a subscription as the API does, and starts its workflow. */
    create: (subscription: NewSubscription) =>
      insertSubscription(db, merchantId, subscription).then(async (ref) => {
        await confirmStart(ref);
        return ref;
      }),
    confirmStart,
    /** As {@link executeUntilAccepted}. */
    execute: (ref: SubscriptionRef, command: Command) =>
      executeUntilAccepted(workflows, ref, command),
    createRowOnly: (subscription: NewSubscription) =>
      insertSubscription(db, merchantId, subscription),
    /** The clock of a time-skipping server may be decades ahead, so its cards last longer. */
    token: (
      cardNumber = '4242424242424242',
      expiry = server instanceof TestWorkflowEnvironment ? '12/99' : undefined,
    ) => tokenise(gatewayServer.url, cardNumber, expiry),
    /** Subscribes `url` to every event type. */
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
    /** Runs one maintenance sweep. */
    sweep: () => activities.sweep({ nowAt: Date.now(), lookBackMs: 0 }),
    /** Makes the last change of a row older. */
    age: (table: 'payment_intent' | 'refund' | 'subscription', id: string, ago = '2 minutes') =>
      db.execute(sql`
        update ${sql.identifier(table)} set updated_at = now() - ${ago}::interval where id = ${id}`),
    /** Allows the card form to redirect browsers to `origin`. */
    allowReturnTo: (origin: string) => returnOrigins.push(origin),
    /** Creates a test clock at `nowAt`. */
    createClock: async (nowAt: number) => {
      const id = newId('clk', Date.now(), randomBytes);
      await insertTestClock(db, { merchantId, id, targetAt: nowAt, createdAt: Date.now() });
      return id;
    },
    sendClock,
    /** Sets the clock's target and waits until every subscription on the clock has reached it. */
    advance: async (id: string, to: string | number) => {
      const clock = await sendClock(id, typeof to === 'number' ? to : Date.parse(to));
      await eventually(async () => expect(await countBehind(db, clock)).toBe(0));
    },
    state: (ref: SubscriptionRef) => stateOf(db, ref),
    timeline: (ref: SubscriptionRef) => timelineOf(db, ref),
    events: (ref: SubscriptionRef) => eventsOf(db, ref),
    /** The charges of a subscription in the gateway's own records. */
    book: (ref: SubscriptionRef) =>
      controlGateway(
        gatewayServer.url,
        'GET',
        `/control/charges?subscriptionId=${ref.subscriptionId}`,
      ).then(({ charges }) => charges),
    control,
    /** Charges that match have `effect` and get no answer. All look-ups are answered with 500. */
    gatewayAway: async (effect: 'done' | 'none' = 'done', match: object = {}) => {
      const lost = { operation: 'charge', fault: 'lose_answer', effect, match, count: 10_000 };
      await control('POST', '/control/faults', lost);
      const failing = { operation: 'lookup', fault: 'error_500', count: 10_000 };
      await control('POST', '/control/faults', failing);
    },
    gatewayBack: () => control('DELETE', '/control/faults'),
    async close() {
      await workers?.stop();
      await delivery.stop(20_000);
      await gateway.close();
      await gatewayServer.close();
      await counted?.close();
      await closeDb();
      await database.drop();
    },
  };
}

/**
 * Executes a command. On a busy machine a worker may accept the command too late, and the call fails with
 * `service_unavailable`. Then the same command is sent again, as the API's callers do.
 */
export function executeUntilAccepted(
  workflows: Pick<SubscriptionWorkflows, 'execute'>,
  ref: SubscriptionRef,
  command: Command,
): Promise<CommandAnswer> {
  return untilAccepted(() => workflows.execute(ref, command));
}

/**
 * Activities that fail at once. When a local activity fails, the workflow schedules it as a normal activity,
 * which a worker of another process runs.
 */
function refusing(activities: Activities): Activities {
  const refuse = () => Promise.reject(new Error('no local activities here'));
  const names = Object.keys(activities).map((name) => [name, refuse]);
  return Object.fromEntries(names) as Activities;
}
