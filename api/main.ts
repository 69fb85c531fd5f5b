import { randomBytes } from 'node:crypto';
import { createDb, createProbeDb, requireDirect } from '../db/client.ts';
import { requireMigrated } from '../db/migrate.ts';
import { declarationRows } from '../db/repositories/customers/declarations.ts';
import { endpointsOf } from '../db/repositories/webhooks/deliveries.ts';
import { missingPeppers } from '../db/repositories/merchants/credentials.ts';
import { gatewayRows } from '../db/repositories/merchants/gateways.ts';
import { reportUnreadableSecrets } from '../db/repositories/merchants/sealed-secrets.ts';
import { orderRows } from '../db/repositories/payments/charges.ts';
import { readFigures, readViolations, requireWritable } from '../db/repositories/sweeps/figures.ts';
import { subscriptionRows } from '../db/repositories/subscriptions/row.ts';
import { createMerchantGateways } from '../gateways/merchant-gateways.ts';
import { createSandboxClient } from '../gateways/sandbox/client.ts';
import { loadApiConfig } from '../runtime/config.ts';
import { ConfigError } from '../runtime/environment.ts';
import { armFailpoint } from '../runtime/failpoints.ts';
import { createLogger } from '../runtime/logger.ts';
import { auditMetrics, createMetrics, gatewayObserver, liveMetrics } from '../runtime/metrics.ts';
import { startProbes } from '../runtime/probes.ts';
import { checkUnanswered } from '../runtime/request-scope.ts';
import { createSealing } from '../runtime/sealing.ts';
import { startTracing, tracedRequest } from '../runtime/tracing.ts';
import { announceReady, onShutdown } from '../runtime/shutdown.ts';
import { submitCard } from '../temporal/cards.ts';
import { declarationTaker } from '../temporal/declarations.ts';
import { createGatewaySubjects } from '../temporal/gateway-subjects.ts';
import { createOrders } from '../temporal/orders.ts';
import { createSubscriptionWorkflows } from '../temporal/subscriptions/workflows.ts';
import { createTemporalClient } from '../temporal/client.ts';
import { endpointProblem } from '../runtime/webhook-address.ts';
import { createWebhookQueues } from '../temporal/webhook-queues.ts';
import { createWorkflowStarts } from '../temporal/subscriptions/start.ts';
import { createApp } from './http/frame.ts';
import { useCurrencies } from './fields.ts';
import { limitsPerSecond } from './http/caller.ts';
import { createApiServer } from './http/server.ts';
import { createFeedWaits } from './routes/events/waits.ts';

/** Maximum number of connections to Postgres. A request holds a connection for a few milliseconds. */
const POOL_SIZE = 20;
/** Time limit in ms for a client to send a request. */
const RECEIVE_WITHIN_MS = 15_000;
/** Idle timeout of a connection, in ms. A load balancer's timeout (often 60 s) must expire first. */
const KEEP_ALIVE_MS = 65_000;
/** Time limit in ms for open requests at a shutdown. Longer than a request may take (35 s). */
const DRAIN_MS = 40_000;
/** Time limit in ms of a request to a processor, for which a payer waits. */
const PROCESSOR_TIMEOUT_MS = 8_000;

const config = loadApiConfig();
const logger = createLogger({ name: 'api', level: config.logLevel });
armFailpoint(config.failpoint);
const tracing = await startTracing(config.tracesEndpoint, 'api');
useCurrencies(config.currencies);

const database = createDb({
  url: config.databaseUrl,
  poolSize: POOL_SIZE,
  applicationName: 'perennial-api',
  beforeEach: checkUnanswered,
});
const { db } = database;
const metrics = createMetrics({
  process: 'api',
  pool: database.poolUse,
  isServed: config.metricsPort !== undefined,
});
const temporal = createTemporalClient(config);
const probeDatabase = createProbeDb(config.databaseUrl, 'perennial-api-probe');
const probes = startProbes({
  host: config.host,
  port: config.metricsPort,
  pages: [
    () => metrics.text(),
    liveMetrics('perennial_temporal_up', () => temporal.reach().then(() => [])),
    liveMetrics('perennial_database_up', () => readFigures(probeDatabase.db)),
    auditMetrics(() => readViolations(db)),
  ],
  checkDatabase: () => requireWritable(probeDatabase.db),
  status: () => ({}),
  logger,
});
await requireDirect(db);
await requireMigrated(db);
const sealing = createSealing(config.encryptionKeys);
const pepperProblem = await missingPeppers(db, config.credentialPeppers);
if (pepperProblem !== null) throw new ConfigError([pepperProblem]);
await reportUnreadableSecrets(db, sealing.keyIds, (line) => logger.error(line));
const sandbox = createSandboxClient({
  url: config.gatewayUrl,
  publicUrl: config.gatewayPublicUrl,
  apiKey: config.gatewayKey,
});
const gateways = createMerchantGateways({
  sandbox,
  ...gatewayRows(db),
  sealing,
  timeoutMs: PROCESSOR_TIMEOUT_MS,
  doubleUrls: config.doubleUrls,
  onKeyRefused: (merchantId, gateway) =>
    logger.error({ merchantId, gateway }, 'the gateway refuses the key of the account'),
  observer: gatewayObserver(metrics),
});
const onTemporal = {
  client: temporal.client,
  taskQueuePrefix: config.taskQueuePrefix,
  logger,
};
const workflows = createSubscriptionWorkflows({ ...onTemporal, rows: subscriptionRows(db) });
const orders = createOrders({ ...onTemporal, rows: orderRows(db) });
const starts = createWorkflowStarts((ref) => workflows.start(ref));
const feedWaits = createFeedWaits();
const webhooks = createWebhookQueues({
  ...onTemporal,
  endpointsOf: (stream) => endpointsOf(db, stream, Date.now()),
});
const app = createApp({
  db,
  feedWaits,
  workflows,
  starts,
  orders,
  submitCard: (page, paymentToken) => submitCard({ workflows, orders }, page, paymentToken),
  takeDeclaration: declarationTaker({
    rows: declarationRows(db),
    workflows,
    wakeStream: (stream) => webhooks.wakeStream(stream),
    logger,
  }),
  webhooks,
  gatewaySubjects: createGatewaySubjects(onTemporal),
  logger,
  onAnswer: (labels, seconds) => metrics.observe('perennial_http_request_seconds', labels, seconds),
  trace: tracedRequest,
  now: Date.now,
  random: randomBytes,
  publicUrl: config.publicUrl,
  homeLinks: config.homeLinks,
  checkoutExpiryMs: config.checkoutExpiryMs,
  trustedProxies: config.trustedProxies,
  rateLimits: limitsPerSecond(config.requestsPerSecond),
  sessionKey: config.sessionKey,
  credentialPeppers: config.credentialPeppers,
  gateways,
  testCards: sandbox.testCards,
  declineNext: (order) => sandbox.declineNext(order),
  sealing,
  endpointProblem: (endpoint) =>
    endpointProblem(endpoint, {
      allowLoopback: config.webhookAllowLoopback,
      sendsMails: config.sendsMails,
    }),
});

const server = createApiServer(
  app,
  { logger, now: Date.now, random: randomBytes },
  { requestTimeout: RECEIVE_WITHIN_MS, keepAliveTimeout: KEEP_ALIVE_MS },
);

const shutdown = onShutdown(
  [
    { name: 'readiness', close: () => probes.drain() },
    { name: 'long polls', close: () => feedWaits.stop() },
    { name: 'requests', timeoutMs: DRAIN_MS, close: () => server.drain() },
    { name: 'workflow starts', close: () => starts.stop() },
    { name: 'temporal', close: () => temporal.close() },
    { name: 'gateway', close: () => sandbox.close() },
    { name: 'database', close: () => Promise.all([database.close(), probeDatabase.close()]) },
    ...tracing,
    { name: 'probes', close: () => probes.close() },
  ],
  { logger },
);
server.on('error', (error) => {
  logger.fatal({ error: error.message }, 'cannot listen');
  shutdown('cannot listen', 1);
});
server.listen(config.port, config.host, () => {
  logger.info({ host: config.host, port: config.port }, 'ready');
  probes.ready();
  announceReady();
});
