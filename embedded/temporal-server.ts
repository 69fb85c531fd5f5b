import { Connection } from '@temporalio/client';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Service } from './services.ts';

export interface TemporalServerSettings {
  /** Path of the Temporal CLI. */
  readonly cli: string;
  readonly host: string;
  readonly port: number;
  readonly namespace: string;
  /** The Web UI's port; without one there is no Web UI. */
  readonly uiPort?: number;
  /** Where its state is kept; without one it is in memory and ends with the server. */
  readonly stateFile?: string;
  readonly logFile: string;
}

/** Search attributes the workflows set. A server that lacks one refuses them. */
export const SEARCH_ATTRIBUTES = {
  MerchantId: 'Keyword',
  SubscriptionStatus: 'Keyword',
  LastOutcome: 'Keyword',
} as const;

const READY_WITHIN_MS = 60_000;

/**
 * The write-ahead log, synced at its checkpoints: 3.5 times the throughput of the default, and a
 * killed server loses nothing (a power cut may lose the last moments).
 */
const SQLITE_PRAGMAS = ['journal_mode=wal', 'synchronous=1'] as const;

const DYNAMIC_CONFIG = [
  // It would ask on the internet for newer versions.
  'frontend.enableServerVersionCheck=false',
  'frontend.enableUpdateWorkflowExecution=true',
  'frontend.enableUpdateWorkflowExecutionAsyncAccepted=true',
  // Priority and fairness keys: this server is older than those that have them switched on.
  'matching.useNewMatcher=true',
  'matching.enableFairness=true',
] as const;

/** The Temporal dev server as a service, ready when it knows namespace and search attributes. */
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
    stopSteps: [
      { signal: 'SIGTERM', waitMs: 4_000 },
      { signal: 'SIGKILL', waitMs: 2_000 },
    ],
    isOurProgram: false,
  };
}

/** `host:port` at which clients of this machine reach the server. */
export function temporalAddress({ host, port }: { host: string; port: number }): string {
  return `${host === '0.0.0.0' ? '127.0.0.1' : host}:${port}`;
}

/** True when the server answers and knows the namespace with every one of our search attributes. */
async function isServing(address: string, namespace: string): Promise<boolean> {
  const connection = await Connection.connect({ address, connectTimeout: 1_000 });
  try {
    return (await missingAttributes(connection, namespace)).length === 0;
  } finally {
    await connection.close();
  }
}

/** Names of our search attributes that the namespace does not have. */
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
