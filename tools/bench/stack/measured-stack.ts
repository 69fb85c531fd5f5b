import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import postgres from 'postgres';
import { runCommand } from '../../embedded/run-command.ts';
import { freePort } from '../../embedded/ports.ts';
import { innerPorts } from '../../embedded/temporal-cluster.ts';
import { openProcessTable } from '../../embedded/process-table.ts';
import { startStack } from '../../scripts/client/own-stack.ts';
import { createMerchantClient } from '../../scripts/client/merchant-client.ts';
import type { MerchantClient } from '../../scripts/client/merchant-client.ts';
import type { Closers } from './child-process.ts';

export type TemporalKind = 'dev' | 'cluster';

export const PROCESSES = ['worker', 'api', 'gateway', 'temporal', 'postgres'] as const;
export type ProcessName = (typeof PROCESSES)[number];

/** Makes an API client of one merchant. The client calls `onRepeat` for every repeated request. */
export type ClientOf = (onRepeat?: (reason: string) => void) => MerchantClient;

export type MeasuredStack = Awaited<ReturnType<typeof startMeasuredStack>>;

const MERCHANT_WITHIN_MS = 60_000;
/** While the API is busy or unavailable, a request is repeated for this time in ms. */
const RETRIES_WITHIN_MS = 120_000;
/** Highest port of Temporal's frontend. A cluster's other ports are up to 2,008 higher, at most 32,767. */
const TEMPORAL_PORT_MAX = 30_000;

/** `closers` stop it. */
export async function startMeasuredStack(
  dataDir: string,
  temporalKind: TemporalKind,
  closers: Closers,
) {
  const ports = await stackPorts(temporalKind);
  const stack = await startStack({
    dataDir,
    temporal: temporalKind,
    ports,
  });
  closers.unshift(() => stack.stop());
  const { demo } = stack.start;
  const sql = openSql(demo.databaseUrl);
  const adminUrl = new URL(demo.databaseUrl);
  adminUrl.pathname = '/postgres';
  const statistics = openSql(adminUrl.href);
  const temporal = await Connection.connect({ address: demo.temporalAddress });
  closers.unshift(
    () => temporal.close(),
    () => Promise.all([sql.end({ timeout: 2 }), statistics.end({ timeout: 2 })]),
  );
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
    /** Connection to the database `postgres`. Commits in this database do not count as the product's. */
    statistics,
    temporal,
    pids: (): ReadonlyMap<ProcessName, number> => {
      const running = new Map(table.running().map(({ name, pid }) => [name, pid]));
      return new Map(
        PROCESSES.flatMap((name) => {
          const pid = running.get(name);
          return pid === undefined ? [] : [[name, pid] as const];
        }),
      );
    },
    merchant: clientOf(demo),
    addMerchant: async (name: string) => clientOf(await createMerchant(dataDir, name)),
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

async function stackPorts(temporalKind: TemporalKind) {
  let temporal = await freePort();
  while (temporal > TEMPORAL_PORT_MAX) temporal = await freePort();
  const inner = temporalKind === 'cluster' ? Object.values(innerPorts(temporal)) : [];
  const taken = new Set([temporal, ...inner]);
  const other = async (): Promise<number> => {
    const port = await freePort();
    if (taken.has(port)) return other();
    taken.add(port);
    return port;
  };
  const [api, gateway] = [await other(), await other()];
  return { api, gateway, postgres: await other(), temporal, temporalUi: await other() };
}

async function createMerchant(
  dataDir: string,
  name: string,
): Promise<{ keyId: string; secret: string }> {
  const answer = await runCommand(
    process.execPath,
    ['--import', 'tsx', 'cli/merchant.ts', '--json', 'create', '--name', name],
    { timeoutMs: MERCHANT_WITHIN_MS, environment: { DATA_DIR: dataDir } },
  );
  return JSON.parse(answer) as { keyId: string; secret: string };
}
