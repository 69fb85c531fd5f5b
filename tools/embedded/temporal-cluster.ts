import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { EmbeddedConfig } from '../config.ts';
import { cachedFolder } from './cache.ts';
import { runCommand, runGo } from './commands.ts';
import { ensureDatabase } from './postgres.ts';
import { withStillWorking } from './progress.ts';
import type { Report } from './progress.ts';
import type { Service } from './services.ts';
import { ComponentMissingError, onPath } from './find-program.ts';

/** The newest version whose go.mod has no replace directive, which `go install` refuses. */
const VERSION = '1.32.1';
const MODULE = 'go.temporal.io/server/cmd';
const BUILD_TIMEOUT_MS = 30 * 60_000;
const SCHEMA_TIMEOUT_MS = 120_000;
const READY_WITHIN_MS = 90_000;
const NAMESPACE_KNOWN_AFTER_MS = 12_000;
/** The cluster of docker-compose.yml uses the same files. */
const inDocker = (file: string) => fileURLToPath(new URL(`../../docker/${file}`, import.meta.url));
const DYNAMIC_CONFIG = inDocker('temporal-dynamic-config.yaml');
const SCHEMA_SCRIPT = inDocker('temporal-schema.sh');
/** Time for which Temporal keeps the history of a closed workflow. */
const RETENTION = '3 days';

/** A Temporal cluster on Postgres. One process runs all four services. */
export interface TemporalClusterSettings {
  readonly programs: { readonly server: string; readonly sqlTool: string };
  readonly databaseUrl: string;
  readonly host: string;
  readonly port: number;
  readonly logFile: string;
}

/** Builds the server and its schema tool once into the cache. Throws ComponentMissingError. */
export async function temporalClusterPrograms(
  { cacheDir }: Pick<EmbeddedConfig, 'cacheDir'>,
  report: Report,
): Promise<TemporalClusterSettings['programs']> {
  if ((await onPath('go')) === undefined) {
    throw new ComponentMissingError(
      'A Temporal cluster is built from Go modules, and `go` is not on PATH. Install Go 1.26, or set ' +
        'TEMPORAL_ADDRESS to a running cluster.',
    );
  }
  const folder = await cachedFolder(
    cacheDir,
    `temporal-server-${VERSION}`,
    report,
    async (building) => {
      report('building a Temporal cluster from Go modules, once: about 5 minutes on two cores');
      await withStillWorking(report, 'building the Temporal cluster', () => build(building));
    },
  );
  return { server: join(folder, 'server'), sqlTool: join(folder, 'sql') };
}

async function build(folder: string): Promise<void> {
  for (const program of ['server', 'tools/sql']) {
    const module = `${MODULE}/${program}@v${VERSION}`;
    const args = ['install', '-ldflags=-s -w', '-tags', 'disable_grpc_modules', module];
    await runGo(folder, args, BUILD_TIMEOUT_MS);
  }
}

/** Creates the cluster's two databases and migrates them to this version's schema. Safe to repeat. */
export async function prepareClusterSchema(settings: TemporalClusterSettings): Promise<void> {
  const url = new URL(settings.databaseUrl);
  for (const database of ['temporal', 'temporal_visibility']) {
    await ensureDatabase(Object.assign(new URL(url), { pathname: `/${database}` }).href);
  }
  await runCommand('sh', [SCHEMA_SCRIPT], {
    timeoutMs: SCHEMA_TIMEOUT_MS,
    environment: {
      TEMPORAL_SQL_TOOL: settings.programs.sqlTool,
      SQL_PLUGIN: 'postgres12_pgx',
      SQL_HOST: url.hostname,
      SQL_PORT: url.port,
      SQL_USER: decodeURIComponent(url.username),
      SQL_PASSWORD: decodeURIComponent(url.password),
    },
  });
}

const INNER_PORTS = [
  'FRONTEND_HTTP_PORT',
  'FRONTEND_MEMBERSHIP_PORT',
  'HISTORY_GRPC_PORT',
  'HISTORY_MEMBERSHIP_PORT',
  'MATCHING_GRPC_PORT',
  'MATCHING_MEMBERSHIP_PORT',
  'WORKER_GRPC_PORT',
  'WORKER_MEMBERSHIP_PORT',
] as const;
const INNER_PORTS_FROM = 2_001;
/** Maximum port. The cluster stores the ports of its services in a signed column of two bytes. */
const PORT_MAX = 32_767;

/** The ports between the cluster's services, behind a frontend at `port`. Throws if one is too high. */
export function innerPorts(port: number): Record<(typeof INNER_PORTS)[number], number> {
  const last = port + INNER_PORTS_FROM + INNER_PORTS.length - 1;
  if (last > PORT_MAX) {
    throw new Error(`TEMPORAL_PORT: must be at most ${PORT_MAX - (last - port)} with a cluster`);
  }
  return Object.fromEntries(
    INNER_PORTS.map((name, at) => [name, port + INNER_PORTS_FROM + at]),
  ) as Record<(typeof INNER_PORTS)[number], number>;
}

export function temporalClusterService(settings: TemporalClusterSettings): Service {
  const { hostname, port, username, password } = new URL(settings.databaseUrl);
  const ports = Object.entries(innerPorts(settings.port)).map(([name, inner]) => [
    name,
    String(inner),
  ]);
  return {
    name: 'temporal',
    program: () => ({ command: settings.programs.server, args: ['--allow-no-auth', 'start'] }),
    environment: {
      ...(Object.fromEntries(ports) as Record<string, string>),
      DB: 'postgres12_pgx',
      DB_PORT: port,
      POSTGRES_SEEDS: hostname,
      POSTGRES_USER: decodeURIComponent(username),
      POSTGRES_PWD: decodeURIComponent(password),
      BIND_ON_IP: settings.host,
      FRONTEND_GRPC_PORT: String(settings.port),
      DYNAMIC_CONFIG_FILE_PATH: DYNAMIC_CONFIG,
      NUM_HISTORY_SHARDS: '4',
      LOG_LEVEL: 'warn',
      // Without this address a restarted service waits for services that are down.
      TEMPORAL_BROADCAST_ADDRESS: settings.host,
    },
    logFile: settings.logFile,
    isReady: () => isServing(`${settings.host}:${settings.port}`),
    readyWithinMs: READY_WITHIN_MS,
    stopSteps: [
      { signal: 'SIGTERM', waitMs: 4_000 },
      { signal: 'SIGKILL', waitMs: 2_000 },
    ],
    isOurProgram: false,
  };
}

/** Waits 12 s after the registration: then every service of the cluster knows the namespace. */
export async function ensureNamespace(address: string, namespace: string): Promise<void> {
  const connection = await Connection.connect({ address, connectTimeout: 5_000 });
  try {
    const { namespaces } = await connection.workflowService.listNamespaces({});
    if (namespaces.some(({ namespaceInfo }) => namespaceInfo?.name === namespace)) return;
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: msToTs(RETENTION),
    });
    // The cluster's services reload the list of namespaces every few seconds.
    await new Promise((resolve) => setTimeout(resolve, NAMESPACE_KNOWN_AFTER_MS));
  } finally {
    await connection.close();
  }
}

/** True, or throws if no server answers. */
export async function isServing(address: string): Promise<boolean> {
  const connection = await Connection.connect({ address, connectTimeout: 1_000 });
  try {
    await connection.withDeadline(Date.now() + 2_000, () =>
      connection.workflowService.getClusterInfo({}),
    );
    return true;
  } finally {
    await connection.close();
  }
}
