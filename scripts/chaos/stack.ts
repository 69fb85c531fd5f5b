import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { childEnvironment } from '../../runtime/config.ts';
import { findRunningStart } from '../client/running-start.ts';
import type { RunningStart } from '../client/running-start.ts';
import { waitFor } from '../client/patience.ts';

export interface Stack {
  readonly start: RunningStart;
  stop(): Promise<void>;
}

/** Building the Temporal cluster may be part of it, the first time. */
const READY_WITHIN_MS = 20 * 60_000;
const STOP_WITHIN_MS = 45_000;

/**
 * A whole system of its own, all processes of production on one machine: `npm start` on a Temporal
 * cluster that keeps its state in the same Postgres. Data and ports are its own, so one that somebody
 * works with is left alone.
 *
 * @throws Error with the end of its output when it does not come up.
 */
export async function startStack(dataDir: string, firstPort: number): Promise<Stack> {
  mkdirSync(dataDir, { recursive: true });
  const logFile = join(dataDir, 'start.log');
  const log = openSync(logFile, 'w');
  const child = spawn(process.execPath, ['--import', 'tsx', 'scripts/start.ts'], {
    stdio: ['pipe', log, log],
    // A Ctrl-C here is for this process, which stops that one in order.
    detached: true,
    env: childEnvironment({
      DATA_DIR: dataDir,
      API_PORT: String(firstPort),
      GATEWAY_PORT: String(firstPort + 1),
      POSTGRES_PORT: String(firstPort + 2),
      TEMPORAL_PORT: String(firstPort + 3),
      EMBEDDED_TEMPORAL: 'cluster',
      // Nobody is to wait for their share of requests here.
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
    child.kill('SIGINT');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
    await gone;
    clearTimeout(timer);
  };
  try {
    await waitFor('the system to come up', READY_WITHIN_MS, () => {
      if (isGone) throw new Error(`It did not come up:\n${readFileSync(logFile, 'utf8')}`);
      return readFileSync(logFile, 'utf8').includes('Perennial is running') ? true : undefined;
    });
    return { start: await findRunningStart(dataDir), stop };
  } catch (error) {
    if (!isGone) await stop();
    throw error;
  }
}
