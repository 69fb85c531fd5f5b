import { Connection } from '@temporalio/client';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Service } from './services.ts';

export interface TemporalServerSettings {
  readonly cli: string;
  readonly host: string;
  readonly port: number;
  readonly namespace: string;
  /** Port of the Web UI. If undefined, there is no Web UI. */
  readonly uiPort?: number;
  /** File for the server's state. If undefined, the state is in memory and is lost when the server ends. */
  readonly stateFile?: string;
  readonly logFile: string;
}

/** A workflow task that sets an unregistered search attribute fails. */
export const SEARCH_ATTRIBUTES = {
  MerchantId: 'Keyword',
  SubscriptionStatus: 'Keyword',
  LastOutcome: 'Keyword',
  ReceiptId: 'Keyword',
} as const;

const READY_WITHIN_MS = 60_000;

/** Synced only at checkpoints: 3.5 times the throughput. Only a power failure may lose the latest writes. */
const SQLITE_PRAGMAS = ['journal_mode=wal', 'synchronous=1'] as const;

const DYNAMIC_CONFIG = [
  // Without this setting the server looks for newer versions on the internet.
  'frontend.enableServerVersionCheck=false',
  'frontend.enableUpdateWorkflowExecution=true',
  'frontend.enableUpdateWorkflowExecutionAsyncAccepted=true',
  // Enables priority and fairness keys, which are off by default in this server version.
  'matching.useNewMatcher=true',
  'matching.enableFairness=true',
] as const;

/** Ready when the server knows the namespace and the search attributes. */
export function temporalService(settings: TemporalServerSettings): Service {
  const { cli, host, port, namespace, uiPort, stateFile } = settings;
  const flag = (name: string, values: readonly string[]): string[] =>
    values.flatMap((value) => [`--${name}`, value]);
  const attributes = Object.entries(SEARCH_ATTRIBUTES).map(([name, type]) => `${name}=${type}`);
  const args = [
    'server',
    'start-dev',
    ...flag('ip', [host]),
    ...flag('port', [String(port)]),
    ...flag('namespace', [namespace]),
    ...flag('log-level', ['warn']),
    ...flag('search-attribute', attributes),
    ...flag('dynamic-config-value', DYNAMIC_CONFIG),
    ...(uiPort === undefined ? ['--headless'] : flag('ui-port', [String(uiPort)])),
    ...(stateFile === undefined
      ? []
      : [...flag('db-filename', [stateFile]), ...flag('sqlite-pragma', SQLITE_PRAGMAS)]),
  ];
  return {
    name: 'temporal',
    program: () => ({ command: cli, args }),
    logFile: settings.logFile,
    isReady: () => isServing(temporalAddress(settings), namespace),
    readyWithinMs: READY_WITHIN_MS,
    beforeLaunch: async () => {
      if (stateFile !== undefined) await mkdir(dirname(stateFile), { recursive: true });
    },
  };
}

export function temporalAddress({ host, port }: { host: string; port: number }): string {
  return `${host === '0.0.0.0' ? '127.0.0.1' : host}:${port}`;
}

/** True if the namespace has all our search attributes. Throws if the server does not answer. */
async function isServing(address: string, namespace: string): Promise<boolean> {
  const connection = await Connection.connect({ address, connectTimeout: 1_000 });
  try {
    return (await missingAttributes(connection, namespace)).length === 0;
  } finally {
    await connection.close();
  }
}

export async function missingAttributes(
  connection: Connection,
  namespace: string,
): Promise<(keyof typeof SEARCH_ATTRIBUTES)[]> {
  const known = await connection.withDeadline(Date.now() + 2_000, () =>
    connection.operatorService.listSearchAttributes({ namespace }),
  );
  const names = Object.keys(SEARCH_ATTRIBUTES) as (keyof typeof SEARCH_ATTRIBUTES)[];
  return names.filter((name) => !(name in (known.customAttributes ?? {})));
}
