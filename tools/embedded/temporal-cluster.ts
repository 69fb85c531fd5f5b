import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { EmbeddedConfig } from '../config.ts';
import { runCommand } from './run-command.ts';
import { goPrograms } from './go-programs.ts';
import { ensureDatabase } from './postgres.ts';
import type { Report } from './progress.ts';
import type { Service } from './services.ts';

/** The newest version whose go.mod has no replace directive, which `go install` refuses. */
const VERSION = '1.32.1';
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
  const folder = await goPrograms(cacheDir, report, {
    entry: `temporal-server-${VERSION}`,
    module: 'go.temporal.io/server',
    version: `v${VERSION}`,
    programs: ['cmd/server', 'cmd/tools/sql'],
    flags: ['-tags', 'disable_grpc_modules'],
    duration: 'about 5 minutes',
  });
  return { server: join(folder, 'server'), sqlTool: join(folder, 'sql') };
}

/** The folder of the Web UI, `server`, and of its image's settings, `docker.yaml`. Throws ComponentMissingError. */
export const temporalUi = (cacheDir: string, version: string, report: Report): Promise<string> =>
  goPrograms(cacheDir, report, {
    entry: `temporal-ui-${version}`,
    module: 'github.com/temporalio/ui-server/v2',
    version: `v${version}`,
    programs: ['cmd/server'],
    file: 'config/docker.yaml',
    duration: 'about a minute',
  });

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
