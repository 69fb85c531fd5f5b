import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { childEnvironment } from '../../runtime/config.ts';
import { waitFor } from './patience.ts';
import { findRunningStart } from './running-start.ts';
import type { RunningStart } from './running-start.ts';

export interface Stack {
  readonly start: RunningStart;
  stop(): Promise<void>;
}

export interface StackOptions {
  /** Made when it is not there. */
  readonly dataDir: string;
  /** `dev`: the dev server on a file, as `npm start`; `cluster`: a cluster on the same Postgres. */
  readonly temporal: 'dev' | 'cluster';
  readonly ports: StackPorts;
  /** Called at the launch with what stops it, for a signal that comes before it is up. */
  readonly onLaunch?: (stop: () => Promise<void>) => void;
}

export interface StackPorts {
  readonly api: number;
  readonly gateway: number;
  readonly postgres: number;
  readonly temporal: number;
  /** Of the Temporal Web UI, which a cluster does not have. */
  readonly temporalUi?: number;
}

/** Building the Temporal cluster may be part of it, the first time. */
const READY_WITHIN_MS = 20 * 60_000;
const STOP_WITHIN_MS = 45_000;

/**
 * Starts a whole system of its own, all processes of production on one machine: `npm start` with its
 * own data folder and ports, so a system that runs already is left alone.
 *
 * @throws Error with the end of its output when it does not come up.
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { dataDir, temporal, ports } = options;
  mkdirSync(dataDir, { recursive: true });
  const logFile = join(dataDir, 'start.log');
  const log = openSync(logFile, 'w');
  const child = spawn(process.execPath, ['--import', 'tsx', 'scripts/start.ts'], {
    stdio: ['pipe', log, log],
    // A Ctrl-C here is for this process, which stops that one in order.
    detached: true,
    env: childEnvironment({
      DATA_DIR: dataDir,
      API_PORT: String(ports.api),
      GATEWAY_PORT: String(ports.gateway),
      POSTGRES_PORT: String(ports.postgres),
      TEMPORAL_PORT: String(ports.temporal),
      ...(ports.temporalUi === undefined ? {} : { TEMPORAL_UI_PORT: String(ports.temporalUi) }),
      EMBEDDED_TEMPORAL: temporal,
      // The load here is far above the limit of one merchant.
      RATE_LIMIT_PER_SECOND: '1000000',
      // Each payer has an address of their own, which a proxy in front would tell.
      TRUSTED_PROXIES: '1',
      PERENNIAL_EXIT_WITH_PARENT: '1',
    }),
  });
  closeSync(log);
  let isGone = false;
  const gone = new Promise<void>((resolve) => {
    child.once('exit', () => {
      isGone = true;
      resolve();
    });
  });
  const stop = async (): Promise<void> => {
    if (isGone) return;
    child.kill('SIGINT');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
    await gone;
    clearTimeout(timer);
  };
  options.onLaunch?.(stop);
  try {
    await waitFor('the system to come up', READY_WITHIN_MS, () => {
      if (isGone) throw new Error(`It did not come up:\n${readFileSync(logFile, 'utf8')}`);
      return readFileSync(logFile, 'utf8').includes('Perennial is running') ? true : undefined;
    });
    return { start: await findRunningStart(dataDir), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
