import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import postgres from 'postgres';
import { runCommand } from '../../embedded/commands.ts';
import { freePort } from '../../embedded/ports.ts';
import { postgresService, postgresUrl } from '../../embedded/postgres.ts';
import { openProcessTable } from '../../embedded/process-table.ts';
import { loadOrMakeSecrets } from '../../embedded/secrets.ts';
import { supervise } from '../../embedded/services.ts';
import type { DemoFile } from '../../embedded/demo-file.ts';
import { startStack } from '../../scripts/client/own-stack.ts';
import type { StackPorts } from '../../scripts/client/own-stack.ts';
import { createMerchantClient } from '../../scripts/client/merchant-client.ts';
import type { MerchantClient } from '../../scripts/client/merchant-client.ts';
import type { Closer } from '../../../runtime/shutdown.ts';

export type TemporalKind = 'dev' | 'cluster';

export const PROCESSES = ['worker', 'api', 'gateway', 'temporal', 'postgres'] as const;
export type ProcessName = (typeof PROCESSES)[number];

/** Makes an API client of one merchant. The client calls `onRepeat` for every repeated request. */
export type ClientOf = (onRepeat?: (reason: string) => void) => MerchantClient;

export interface MeasuredStack {
  readonly demo: DemoFile;
  readonly temporalKind: TemporalKind;
  readonly sql: postgres.Sql;
  /** Connection to the database `postgres`. Commits in this database do not count as the product's. */
  readonly statistics: postgres.Sql;
  readonly countsStatements: boolean;
  readonly temporal: Connection;
  pids(): ReadonlyMap<ProcessName, number>;
  readonly merchant: ClientOf;
  addMerchant(name: string): Promise<ClientOf>;
}

const MERCHANT_WITHIN_MS = 60_000;
const STOP_WITHIN_MS = 50_000;
/** While the API is busy or unavailable, a request is repeated for this time in ms. */
const RETRIES_WITHIN_MS = 120_000;
/** Highest port of Temporal's frontend. A cluster's other ports are up to 2,008 higher, at most 32,767. */
const TEMPORAL_PORT_MAX = 30_000;

/**
 * Its Postgres counts statements and stores commit times, a few per cent slower. `closers` stop it, also if it fails.
 */
export async function startMeasuredStack(
  dataDir: string,
  temporalKind: TemporalKind,
  closers: Closer[],
): Promise<MeasuredStack> {
  const ports = await stackPorts(temporalKind);
  const countsStatements = await prepareStatistics(dataDir, ports.postgres, closers);
  const stack = await startStack({
    dataDir,
    temporal: temporalKind,
    ports,
    onLaunch: (stop) => closers.unshift({ name: 'stack', timeoutMs: STOP_WITHIN_MS, close: stop }),
  });
  const { demo } = stack.start;
  const sql = openSql(demo.databaseUrl);
  const adminUrl = new URL(demo.databaseUrl);
  adminUrl.pathname = '/postgres';
  const statistics = openSql(adminUrl.href);
  const temporal = await Connection.connect({ address: demo.temporalAddress });
  closers.unshift({
    name: 'connections',
    close: () => Promise.all([sql.end({ timeout: 2 }), statistics.end({ timeout: 2 })]),
  });
  closers.unshift({ name: 'temporal connection', close: () => temporal.close() });
  if (countsStatements) await statistics`create extension if not exists pg_stat_statements`;
  const table = openProcessTable(join(dataDir, 'processes.json'));
  const clientOf =
    (credential: { keyId: string; secret: string }): ClientOf =>
    (onRepeat = () => undefined) =>
      createMerchantClient({
        apiUrl: demo.apiUrl,
        ...credential,
        patienceMs: RETRIES_WITHIN_MS,
        onRepeat,
      });
  return {
    demo,
    temporalKind,
    sql,
    statistics,
    countsStatements,
    temporal,
    pids: () => {
      const running = new Map(table.running().map(({ name, pid }) => [name, pid]));
      return new Map(
        PROCESSES.flatMap((name) => {
          const pid = running.get(name);
          return pid === undefined ? [] : [[name, pid] as const];
        }),
      );
    },
    merchant: clientOf(demo),
    addMerchant: async (name) => clientOf(await createMerchant(dataDir, name)),
  };
}

function openSql(url: string): postgres.Sql {
  return postgres(url, {
    max: 2,
    connect_timeout: 10,
    onnotice: () => undefined,
    connection: { application_name: 'perennial-bench', statement_timeout: 60_000 },
  });
}

async function stackPorts(temporalKind: TemporalKind): Promise<StackPorts> {
  let temporal = await freePort();
  while (temporal > TEMPORAL_PORT_MAX) temporal = await freePort();
  const inner = temporalKind === 'cluster' ? temporal + 2_001 : temporal;
  const taken = (port: number): boolean => port >= inner && port < inner + 8;
  const others = new Set<number>();
  while (others.size < 4) {
    const port = await freePort();
    if (port !== temporal && !taken(port)) others.add(port);
  }
  const [api = 0, gateway = 0, postgresPort = 0, temporalUi = 0] = others;
  return { api, gateway, postgres: postgresPort, temporal, temporalUi };
}

/** Writes the settings that Postgres reads only at its start. False without pg_stat_statements. */
async function prepareStatistics(
  dataDir: string,
  port: number,
  closers: Closer[],
): Promise<boolean> {
  mkdirSync(dataDir, { recursive: true });
  const settings = {
    dataFolder: join(dataDir, 'postgres'),
    logFile: join(dataDir, 'logs', 'postgres.log'),
    port,
    password: loadOrMakeSecrets(join(dataDir, 'secrets.json')).postgresPassword,
    isDurable: true,
  };
  const quietly = (): void => undefined;
  const server = supervise(postgresService(settings, quietly), { report: quietly });
  closers.unshift({ name: 'postgres', close: () => server.stop() });
  await server.start();
  const sql = openSql(postgresUrl(settings, 'postgres'));
  try {
    await sql`alter system set track_commit_timestamp = on`;
    const found = await sql`
      select 1 from pg_available_extensions where name = 'pg_stat_statements'`;
    if (found.length === 0) return false;
    await sql`alter system set shared_preload_libraries = 'pg_stat_statements'`;
    return true;
  } finally {
    await sql.end({ timeout: 2 });
    await server.stop();
  }
}

async function createMerchant(
  dataDir: string,
  name: string,
): Promise<{ keyId: string; secret: string }> {
  const answer = await runCommand(
    process.execPath,
    ['--import', 'tsx', 'tools/scripts/merchant.ts', '--json', 'create', '--name', name],
    { timeoutMs: MERCHANT_WITHIN_MS, environment: { DATA_DIR: dataDir } },
  );
  return JSON.parse(answer) as { keyId: string; secret: string };
}
