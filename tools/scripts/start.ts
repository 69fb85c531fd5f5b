// npm start runs each part of the system as a separate process, after it has downloaded or built missing programs. It
// uses the servers of DATABASE_URL and TEMPORAL_ADDRESS, if they are set. With `--gateway stripe-double` it also starts a
// double of Stripe behind a fault proxy, and the demo merchant takes payments there.

import { join, relative } from 'node:path';
import { runCommand } from '../embedded/run-command.ts';
import { demoFile, findDemoFile } from '../../cli/command-line/demo-file.ts';
import type { DemoFile } from '../../cli/command-line/demo-file.ts';
import { migrateAndFindDemoMerchant } from '../embedded/demo-merchant.ts';
import { prepareGivenServer } from '../embedded/given-temporal.ts';
import { clearEarlierStart, STARTER } from '../embedded/leftovers.ts';
import { requireFreePorts } from '../embedded/ports.ts';
import type { WantedPort } from '../embedded/ports.ts';
import {
  ensureDatabase,
  postgresService,
  postgresUrl,
  requireDatabase,
  withoutPassword,
} from '../embedded/postgres.ts';
import { openProcessTable } from '../embedded/process-table.ts';
import { bundlePrograms } from '../embedded/program-bundle.ts';
import { ourPrograms } from '../embedded/programs.ts';
import type { ProgramPlaces } from '../embedded/programs.ts';
import { loadOrMakeSecrets, writeForOwner } from '../embedded/secrets.ts';
import { secretsFile } from '../../cli/command-line/start-secrets.ts';
import { supervise } from '../embedded/services.ts';
import type { Service, SupervisedService } from '../embedded/services.ts';
import { registerAccount, stripeDoubleServices } from '../embedded/stripe-double.ts';
import { stripeMockFiles } from '../embedded/stripe-mock.ts';
import { temporalCli } from '../embedded/temporal-cli.ts';
import {
  ensureNamespace,
  innerPorts,
  prepareClusterSchema,
  temporalClusterPrograms,
  temporalClusterService,
} from '../embedded/temporal-cluster.ts';
import { temporalAddress, temporalService } from '../embedded/temporal-server.ts';
import { loadEmbeddedConfig } from '../config.ts';
import { urlHost } from '../../runtime/config.ts';
import { listOf } from '../../runtime/environment.ts';
import { onShutdown } from '../../runtime/shutdown.ts';
import { createSealing, keyRingOf } from '../../runtime/sealing.ts';
import { commandLine, gatewayOption } from '../../cli/command-line/options.ts';
import type { GatewayChoice } from '../../cli/command-line/options.ts';
import { withDatabase } from '../../cli/command-line/servers.ts';
import { storeAccount } from '../../cli/merchant/gateway.ts';
import { processorOf } from '../../gateways/processors.ts';

const { gateway } = commandLine('start', 'Runs the whole system on this machine until Ctrl-C.')
  .addOption(gatewayOption('stripe-double: a double of Stripe'))
  .addHelpText('after', '\nPorts and the data folder are environment variables: see .env.example.')
  .parse()
  .opts<{ gateway?: GatewayChoice }>();

const startedAt = performance.now();
const say = (line: string): void => console.log(`· ${line}`);
// The terminal may close before this process ends. Then a write fails, which must not prevent the stop.
process.stdout.on('error', () => undefined);

const BUNDLE_WITHIN_MS = 120_000;

const config = loadEmbeddedConfig();
/** A later start without the option starts the double again, because stored payment methods need it. */
const hasStripeDouble =
  gateway === 'stripe-double' || findDemoFile(config.dataDir)?.stripeDouble !== undefined;
const logFolder = join(config.dataDir, 'logs');
const programFolder = join(config.dataDir, 'programs');
const table = openProcessTable(join(config.dataDir, 'processes.json'));
const running: SupervisedService[] = [];
let isStopping = false;
/** True once this process is recorded as the starter in the process table. */
let isListed = false;

const stop = (...names: string[]) => ({
  name: names.join(' and '),
  timeoutMs: 9_000,
  close: () =>
    Promise.all(
      running.filter(({ name }) => names.includes(name)).map((service) => service.stop()),
    ),
});
const shutdown = onShutdown(
  [
    stop('api', 'worker'),
    stop('fault-proxy'),
    stop('gateway', 'stripe-double'),
    stop('stripe-mock'),
    stop('temporal', 'postgres'),
    { name: 'process table', close: () => isListed && table.remove(STARTER) },
  ],
  {
    logger: {
      info: (_: unknown, message?: string) => {
        isStopping = true;
        if (running.length > 0) say(message ?? '');
      },
      error: (details: unknown, message?: string) => say(`${message}: ${JSON.stringify(details)}`),
    },
  },
);

try {
  await startAll();
} catch (error) {
  // If the user stops this process during the start, the start fails. This failure is not reported.
  if (!isStopping) console.error(`\n${error instanceof Error ? error.message : String(error)}\n`);
  shutdown('could not start', 1);
}

async function startAll(): Promise<void> {
  if (gateway === 'sandbox' && hasStripeDouble) {
    throw new Error(
      `The demo merchant of ${shown(config.dataDir)} has an account at the Stripe double. For the sandbox set ` +
        'DATA_DIR to a new folder; without --gateway the double is started again.',
    );
  }
  say(`starting; data in ${shown(config.dataDir)}`);
  await clearEarlierStart(table, say);
  table.add(STARTER, process.pid);
  isListed = true;
  await requireFreePorts(config.host, wantedPorts());
  const made = loadOrMakeSecrets(secretsFile(config.dataDir));
  const secrets = { ...made, ...config.givenSecrets };
  const database = startDatabase(made.postgresPassword);
  const [databaseUrl, address, workflowBundle] = await Promise.all([
    database,
    config.embeddedTemporal === 'cluster' ? database.then(startCluster) : startTemporal(),
    bundleWorkflows(),
    bundlePrograms(programFolder),
  ]);
  const [pepper = ''] = listOf(secrets.CREDENTIAL_PEPPER);
  const { linkPath, merchantId, ...credential } = await migrateAndFindDemoMerchant({
    databaseUrl,
    dataDir: config.dataDir,
    pepper,
    report: say,
  });

  const localUrl = (port: number): string => `http://${urlHost(config.host)}:${port}`;
  const apiUrl = localUrl(config.apiPort);
  const gatewayUrl = config.gatewayUrl ?? localUrl(config.gatewayPort);
  const temporalUiUrl = config.temporalUiUrl ?? localUrl(config.temporalUiPort);
  const publicUrl = config.publicUrl ?? apiUrl;
  const checkoutUrl = `${publicUrl}${linkPath}`;
  const places = {
    logFolder,
    programFolder,
    metricsPort: config.metricsPort,
    environment: {
      // With NODE_ENV=production the programs refuse WEBHOOK_ALLOW_LOOPBACK.
      NODE_ENV: 'development',
      WEBHOOK_ALLOW_LOOPBACK: 'true',
      HOST: config.host,
      API_PORT: String(config.apiPort),
      GATEWAY_PORT: String(config.gatewayPort),
      DATABASE_URL: databaseUrl,
      TEMPORAL_ADDRESS: address,
      TEMPORAL_NAMESPACE: config.temporalNamespace,
      PUBLIC_URL: publicUrl,
      TEMPORAL_UI_URL: temporalUiUrl,
      DEMO_CHECKOUT_URL: checkoutUrl,
      GATEWAY_URL: gatewayUrl,
      GATEWAY_PUBLIC_URL: config.gatewayPublicUrl ?? gatewayUrl,
      STRIPE_API_URL: hasStripeDouble ? localUrl(config.faultProxyPort) : (config.stripeUrl ?? ''),
      GATEWAY_KEY: secrets.GATEWAY_KEY,
      CREDENTIAL_PEPPER: secrets.CREDENTIAL_PEPPER,
      SESSION_KEY: secrets.SESSION_KEY,
      ENCRYPTION_KEY: secrets.ENCRYPTION_KEY,
      WORKFLOW_BUNDLE: workflowBundle,
    },
  };
  const programs = ourPrograms({ ...places, apiUrl, gatewayUrl: localUrl(config.gatewayPort) });
  const stripeDouble = hasStripeDouble
    ? await startStripeDouble(places, localUrl, merchantId)
    : undefined;
  await Promise.all([run(programs.gateway), run(programs.api), run(programs.worker)]);

  const demo = {
    apiUrl,
    ...credential,
    checkoutUrl,
    temporalUiUrl,
    temporalAddress: address,
    temporalNamespace: config.temporalNamespace,
    databaseUrl,
    gatewayUrl,
    gatewayKey: secrets.GATEWAY_KEY,
    ...(stripeDouble === undefined ? {} : { stripeDouble }),
  };
  writeForOwner(demoFile(config.dataDir), demo);
  console.log(banner(demo));
}

async function run(service: Service): Promise<void> {
  if (isStopping) throw new Error('stopping');
  const supervised = supervise(service, { table, report: say });
  running.push(supervised);
  await supervised.start();
  if (!isStopping) say(`${service.name} is up`);
}

async function startDatabase(password: string): Promise<string> {
  if (config.databaseUrl !== undefined) {
    await requireDatabase(config.databaseUrl);
    return config.databaseUrl;
  }
  const settings = {
    dataFolder: join(config.dataDir, 'postgres'),
    logFile: join(logFolder, 'postgres.log'),
    port: config.postgresPort,
    password,
    isDurable: true,
  };
  await run(postgresService(settings, say));
  const url = postgresUrl(settings, 'perennial');
  await ensureDatabase(url);
  return url;
}

async function startTemporal(): Promise<string> {
  if (config.temporalAddress !== undefined) {
    await prepareGivenServer(config.temporalAddress, config.temporalNamespace, say);
    return config.temporalAddress;
  }
  const settings = {
    cli: await temporalCli(config, say),
    host: config.host,
    port: config.temporalPort,
    namespace: config.temporalNamespace,
    uiPort: config.temporalUiPort,
    stateFile: join(config.dataDir, 'temporal', 'state.db'),
    logFile: join(logFolder, 'temporal.log'),
  };
  await run(temporalService(settings));
  return temporalAddress(settings);
}

async function startCluster(databaseUrl: string): Promise<string> {
  if (config.temporalAddress !== undefined) return startTemporal();
  const settings = {
    programs: await temporalClusterPrograms(config, say),
    databaseUrl,
    host: config.host,
    port: config.temporalPort,
    logFile: join(logFolder, 'temporal.log'),
  };
  await prepareClusterSchema(settings);
  await run(temporalClusterService(settings));
  const address = temporalAddress(settings);
  await ensureNamespace(address, config.temporalNamespace);
  await prepareGivenServer(address, config.temporalNamespace, say);
  return address;
}

type Secrets = Readonly<Record<'DATABASE_URL' | 'GATEWAY_KEY' | 'ENCRYPTION_KEY', string>>;

/** Starts the Stripe double behind its proxy, and gives the demo merchant an account there. */
async function startStripeDouble(
  places: ProgramPlaces & { environment: Secrets },
  localUrl: (port: number) => string,
  merchantId: string,
) {
  const files = await stripeMockFiles(config.cacheDir, say);
  const services = stripeDoubleServices(files, config, places);
  await run(services.stripeMock);
  await run(services.double);
  await run(services.proxy);
  const url = localUrl(config.stripeDoublePort);
  const { environment } = places;
  const account = await registerAccount(url, environment.GATEWAY_KEY, localUrl(config.apiPort));
  await withDatabase({ url: environment.DATABASE_URL, command: 'start' }, async (db) => {
    const sealing = () => createSealing(keyRingOf(environment.ENCRYPTION_KEY));
    const { accountId, webhookSecret } = account;
    const key = { ...account, canCharge: true };
    const entry = {
      merchantId,
      mode: 'test',
      processor: processorOf(`stripe:${accountId}`),
      accountId,
      key,
      webhookSecret,
      current: true,
    } as const;
    await storeAccount({ db, sealing }, entry);
  });
  return { url, proxyUrl: localUrl(config.faultProxyPort), accountId: account.accountId };
}

/** Bundled once, so that a restarted worker does not bundle them again. */
async function bundleWorkflows(): Promise<string> {
  const file = join(config.dataDir, 'workflow-bundle.js');
  await runCommand(process.execPath, ['--import', 'tsx', 'runtime/bundle-workflows.ts', file], {
    timeoutMs: BUNDLE_WITHIN_MS,
    cwd: process.cwd(),
  });
  return file;
}

type PortRow = readonly [isUsed: boolean, port: number, purpose: string, variable: string];

function wantedPorts(): WantedPort[] {
  const { metricsPort = 0, temporalPort } = config;
  const hasMetrics = config.metricsPort !== undefined;
  const hasTemporal = config.temporalAddress === undefined;
  const isCluster = config.embeddedTemporal === 'cluster';
  const inner = hasTemporal && isCluster ? Object.values(innerPorts(temporalPort)) : [];
  const rows: readonly PortRow[] = [
    [true, config.apiPort, 'API', 'API_PORT'],
    [true, config.gatewayPort, 'sandbox gateway', 'GATEWAY_PORT'],
    [hasMetrics, metricsPort, 'metrics of the API', 'METRICS_PORT'],
    [hasMetrics, metricsPort + 1, 'metrics of the worker', 'METRICS_PORT'],
    [hasStripeDouble, config.stripeDoublePort, 'Stripe double', 'STRIPE_DOUBLE_PORT'],
    [hasStripeDouble, config.faultProxyPort, 'fault proxy', 'FAULT_PROXY_PORT'],
    [hasStripeDouble, config.stripeMockPort, 'stripe-mock', 'STRIPE_MOCK_PORT'],
    [config.databaseUrl === undefined, config.postgresPort, 'Postgres', 'POSTGRES_PORT'],
    [hasTemporal, temporalPort, 'Temporal', 'TEMPORAL_PORT'],
    [hasTemporal && !isCluster, config.temporalUiPort, 'Temporal Web UI', 'TEMPORAL_UI_PORT'],
    ...inner.map((port) => [true, port, 'Temporal', 'TEMPORAL_PORT'] as const),
  ];
  return rows.flatMap(([isUsed, port, purpose, variable]) =>
    isUsed ? [{ port, purpose, variable }] : [],
  );
}

function shown(path: string): string {
  const short = relative(process.cwd(), path);
  return short.startsWith('..') ? path : short;
}

function stripeLine({ stripeDouble }: DemoFile): string {
  return stripeDouble === undefined
    ? ''
    : `\n  Stripe double     ${stripeDouble.url}, moves no money; fault proxy at ${stripeDouble.proxyUrl}`;
}

function metricsLine(url: (port: number) => string): string {
  const { metricsPort: port } = config;
  return port === undefined
    ? ''
    : `\n  Metrics           ${url(port)}/metrics (API), ${url(port + 1)}/metrics (worker)`;
}

/** The Web UI's page that lists the running workflows which match `filter`. */
function workflowsUrl({ temporalUiUrl, temporalNamespace }: DemoFile, filter: string): string {
  const query = encodeURIComponent(`${filter} AND ExecutionStatus = "Running"`);
  return `${temporalUiUrl}/namespaces/${temporalNamespace}/workflows?query=${query}`;
}

function banner(demo: DemoFile): string {
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  return `
Perennial is running (ready after ${seconds} s).

  A checkout to try ${demo.checkoutUrl}  (card 4242 4242 4242 4242)
  API               ${demo.apiUrl}
  API documentation ${demo.apiUrl}/docs
  Temporal Web UI   ${demo.temporalUiUrl}
    unpaid          ${workflowsUrl(demo, 'SubscriptionStatus = "UNPAID"')}
    manual review   ${workflowsUrl(demo, 'LastOutcome = "review"')}
  Sandbox gateway   ${demo.gatewayUrl}${stripeLine(demo)}
  Database          ${config.databaseUrl === undefined ? demo.databaseUrl : withoutPassword(demo.databaseUrl)}
  Logs              ${shown(logFolder)}${metricsLine((port) => `http://${urlHost(config.host)}:${port}`)}

  Demo merchant, test mode (HTTP Basic; also in ${shown(join(config.dataDir, 'demo.json'))}):
    user      ${demo.keyId}
    password  ${demo.secret}

  Next, in another terminal:
    npm run demo       a year of a subscription, in seconds
    npm run listen     every event as it happens; --to forwards it to your program
    npm run trigger    makes an event of each type happen
    npm run merchant   more merchants, their credentials and settings

  Ctrl-C stops everything; the data stays.
`;
}
