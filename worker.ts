import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import type { LogLevel } from '@temporalio/worker';
import { measuredCharges } from './activities/subscription.ts';
import { createActivities } from './activities/index.ts';
import { activityInterceptor } from './activities/interceptors.ts';
import { createMailSender } from './activities/mails/sender.ts';
import { createWebhookDelivery } from './activities/webhooks/delivery.ts';
import { createDb, createProbeDb, requireDirect } from './db/client.ts';
import { requireMigrated } from './db/migrate.ts';
import { endpointsOf } from './db/repositories/webhooks/deliveries.ts';
import { gatewayRows } from './db/repositories/merchants/gateways.ts';
import { reportUnreadableSecrets } from './db/repositories/merchants/sealed-secrets.ts';
import { orderRows } from './db/repositories/payments/charges.ts';
import { requireWritable } from './db/repositories/sweeps/figures.ts';
import { subscriptionRows } from './db/repositories/subscriptions/row.ts';
import { RenewalPlaces } from './domain/subscription/renewal-places.ts';
import { createMerchantGateways } from './gateways/merchant-gateways.ts';
import { createSandboxClient } from './gateways/sandbox/client.ts';
import { loadWorkerConfig } from './runtime/config.ts';
import { armFailpoint } from './runtime/failpoints.ts';
import { createLogger } from './runtime/logger.ts';
import { createMetrics, gatewayObserver, liveMetrics } from './runtime/metrics.ts';
import { startProbes } from './runtime/probes.ts';
import { createSdkMetrics } from './runtime/sdk-metrics.ts';
import { keepMaintenanceRunning } from './temporal/maintenance.ts';
import { createSealing } from './runtime/sealing.ts';
import { startTracing } from './runtime/tracing.ts';
import { announceReady, onShutdown } from './runtime/shutdown.ts';
import { createGatewaySubjects } from './temporal/gateway-subjects.ts';
import { createOrders } from './temporal/orders.ts';
import { createSubscriptionWorkflows } from './temporal/subscriptions/workflows.ts';
import { createTemporalClient, plainFields, temporalConnectionOptions } from './temporal/client.ts';
import { GRACE_MS, workerOptionsOf } from './runtime/worker-options.ts';
import { createWebhookQueues } from './temporal/webhook-queues.ts';
import { bundleWorkflows } from './runtime/workflow-bundle.ts';
import { WorkflowTaskSlots } from './runtime/workflow-task-slots.ts';

/** Maximum number of connections to Postgres. Further activities wait for a free connection. */
const POOL_SIZE = 20;
/** Time limit in ms of a request to a gateway. `MONEY_MOVEMENT` in `workflows/activity-calls.ts` depends on this limit. */
const GATEWAY_TIMEOUT_MS = 5_000;
/** Time limit in ms for webhooks in flight: 15 s for a request, 1 s to record it. */
const DRAIN_MS = 16_000;
/** Time in ms after which the workflow task of a first payment has ended: a change during it would cause another task. */
const TASK_ENDED_MS = 2_000;

const config = loadWorkerConfig();
const logger = createLogger({ name: 'worker', level: config.logLevel });
armFailpoint(config.failpoint);
const tracing = await startTracing(config.tracesEndpoint, 'worker');
const sdkMetrics = config.metricsPort === undefined ? undefined : await createSdkMetrics();

// The SDK must not handle signals, because the shutdown below stops the workers in the right order.
Runtime.install({
  logger: new DefaultLogger('TRACE', ({ level, message, meta }) =>
    logger[level.toLowerCase() as Lowercase<LogLevel>](plainFields(meta), message),
  ),
  shutdownSignals: [],
  telemetryOptions: {
    logging: { forward: {}, filter: { core: 'WARN', other: 'ERROR' } },
    ...(sdkMetrics && { metrics: sdkMetrics.exporter }),
  },
});

const database = createDb({
  url: config.databaseUrl,
  poolSize: POOL_SIZE,
  applicationName: 'perennial-worker',
});
const { db } = database;
const workers: Worker[] = [];
const metrics = createMetrics({
  process: 'worker',
  pool: database.poolUse,
  isServed: config.metricsPort !== undefined,
});
const temporal = createTemporalClient(config);
const probeDatabase = createProbeDb(config.databaseUrl, 'perennial-worker-probe');
const probes = startProbes({
  host: config.host,
  port: config.metricsPort,
  pages: [
    () => metrics.text(),
    liveMetrics('perennial_temporal_up', () => temporal.reach().then(() => [])),
    ...(sdkMetrics ? [sdkMetrics.text] : []),
  ],
  checkDatabase: () => requireWritable(probeDatabase.db),
  status: () => ({
    workers: workers.map((worker) => ({ queue: worker.options.taskQueue, ...worker.getStatus() })),
  }),
  logger,
});
await requireDirect(db);
await requireMigrated(db);
const onTemporal = {
  client: temporal.client,
  taskQueuePrefix: config.taskQueuePrefix,
  logger,
};
const sealing = createSealing(config.encryptionKeys);
await reportUnreadableSecrets(db, sealing.keyIds, (line) => logger.error(line));
const sandbox = createSandboxClient({
  url: config.gatewayUrl,
  publicUrl: config.gatewayUrl,
  apiKey: config.gatewayKey,
  timeoutMs: GATEWAY_TIMEOUT_MS,
});
const workflowTaskSlots = new WorkflowTaskSlots();
const gateways = createMerchantGateways({
  sandbox,
  ...gatewayRows(db),
  sealing,
  timeoutMs: GATEWAY_TIMEOUT_MS,
  doubleUrls: config.doubleUrls,
  onKeyRefused: (merchantId, gateway) =>
    logger.error({ merchantId, gateway }, 'the gateway refuses the key of the account'),
  observer: {
    ...gatewayObserver(metrics),
    during: (request) => workflowTaskSlots.lendDuring(request),
  },
});
const queues = createWebhookQueues({
  ...onTemporal,
  endpointsOf: (stream) => endpointsOf(db, stream, Date.now()),
});
const mails = config.mail && createMailSender({ db, links: config.links, mail: config.mail });
const webhooks = createWebhookDelivery({
  db,
  sealing,
  logger,
  wakeEndpoint: queues.wakeEndpoint,
  allowLoopback: config.webhookAllowLoopback,
  mails,
});
const subscriptionWorkflows = createSubscriptionWorkflows({
  ...onTemporal,
  rows: subscriptionRows(db),
});
const unmeasured = createActivities({
  db,
  logger,
  gateways,
  subscriptionWorkflows,
  orders: createOrders({ ...onTemporal, rows: orderRows(db) }),
  gatewaySubjects: createGatewaySubjects(onTemporal),
  webhooks: webhooks.activities,
  links: config.links,
  places: new RenewalPlaces(config.renewalsPerSecond),
  retentionMs: config.retentionMs,
  wakeEndpoint: queues.wakeEndpoint,
  wakeStream: async (stream) => void webhooks.deliver(stream),
  endPayerPriority: (ref) =>
    void setTimeout(() => void subscriptionWorkflows.endPayerPriority(ref), TASK_ENDED_MS),
});
const activities = {
  ...unmeasured,
  chargeAttempt: measuredCharges((input) => unmeasured.chargeAttempt(input), {
    renewed: (late) => metrics.observe('perennial_renewal_lateness_seconds', {}, late),
    settled: (outcome) => metrics.count('perennial_charge_outcomes_total', outcome),
    recovered: (cycle) => metrics.count('perennial_cycles_recovered_total', cycle),
  }),
};

// Connect now: a signal to an endpoint queue has a time limit of 1 s, which must not include the connect.
await temporal.client.connection.ensureConnected();
const workflowBundle =
  config.workflowBundle === undefined && config.queues.includes('billing')
    ? await bundleWorkflows()
    : { codePath: config.workflowBundle ?? '' };
const connection = await NativeConnection.connect(temporalConnectionOptions(config));
workers.push(
  ...(await Promise.all(
    config.queues.map((queue) =>
      Worker.create({
        ...workerOptionsOf(queue, {
          taskQueuePrefix: config.taskQueuePrefix,
          activities,
          activityInterceptor: activityInterceptor(() => workflowTaskSlots.serveCaller()),
          workflowBundle,
          workflowTaskSlots,
          deployment: config.deployment,
        }),
        connection,
        namespace: config.temporalNamespace,
      }),
    ),
  )),
);
const runs = workers.map((worker) => worker.run());

const endMaintenanceChecks =
  config.isMaintenanceOn && config.queues.includes('billing')
    ? keepMaintenanceRunning(onTemporal)
    : undefined;

const shutdown = onShutdown(
  [
    { name: 'readiness', close: () => probes.drain() },
    {
      name: 'workers',
      timeoutMs: GRACE_MS + 5_000,
      close: async () => {
        // `shutdown` throws for a worker that has failed.
        for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
        await Promise.allSettled(runs);
      },
    },
    { name: 'deliveries', timeoutMs: DRAIN_MS, close: () => webhooks.stop(DRAIN_MS) },
    { name: 'mail server', close: () => mails?.close() },
    { name: 'maintenance checks', timeoutMs: 10_000, close: () => endMaintenanceChecks?.() },
    { name: 'temporal client', close: () => temporal.close() },
    { name: 'temporal connection', close: () => connection.close() },
    { name: 'database', close: () => Promise.all([database.close(), probeDatabase.close()]) },
    ...tracing,
    { name: 'probes', close: () => probes.close() },
  ],
  { logger },
);
Promise.all(runs).catch((error: unknown) => {
  logger.fatal({ error: error instanceof Error ? error.message : String(error) }, 'worker failed');
  shutdown('worker failed', 1);
});
probes.ready();
logger.info({ queues: config.queues }, 'ready');
announceReady();
