import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { childEnvironment } from '../../../runtime/environment.ts';
import type { GatewayChoice } from '../../../cli/command-line/options.ts';
import { waitFor } from './wait-for.ts';
import { findRunningStart } from './running-start.ts';
import type { RunningStart } from './running-start.ts';

export interface Stack {
  readonly start: RunningStart;
  stop(): Promise<void>;
}

export interface StackOptions {
  readonly dataDir: string;
  /** `dev`: the dev server with a state file. `cluster`: a cluster on the same Postgres. */
  readonly temporal: 'dev' | 'cluster';
  /** Default: `sandbox`. `stripe-double` needs its three ports. */
  readonly gateway?: GatewayChoice;
  readonly ports: StackPorts;
}

const PORT_VARIABLES = {
  api: 'API_PORT',
  gateway: 'GATEWAY_PORT',
  postgres: 'POSTGRES_PORT',
  temporal: 'TEMPORAL_PORT',
  stripeDouble: 'STRIPE_DOUBLE_PORT',
  faultProxy: 'FAULT_PROXY_PORT',
  stripeMock: 'STRIPE_MOCK_PORT',
  temporalUi: 'TEMPORAL_UI_PORT',
  // The API's. The worker has the port after it.
  metrics: 'METRICS_PORT',
} as const;
export type StackPort = keyof typeof PORT_VARIABLES;
export const STACK_PORTS = Object.keys(PORT_VARIABLES) as StackPort[];

/** A cluster has no Temporal Web UI, and the sandbox none of the three ports of Stripe's double. */
export type StackPorts = Readonly<Partial<Record<StackPort, number>>>;

/** Time limit in ms of a start. The first start with a Temporal cluster also builds the cluster. */
const READY_WITHIN_MS = 20 * 60_000;
const STOP_WITHIN_MS = 45_000;

/** Starts a separate system by `npm start`. Throws with its output if it does not start. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { dataDir, temporal, gateway, ports } = options;
  mkdirSync(dataDir, { recursive: true });
  const logFile = join(dataDir, 'start.log');
  const log = openSync(logFile, 'w');
  const args = gateway === undefined ? [] : ['--gateway', gateway];
  const child = spawn(process.execPath, ['--import', 'tsx', 'tools/scripts/start.ts', ...args], {
    stdio: ['pipe', log, log],
    // A separate process group: Ctrl-C reaches only this process, which stops the child.
    detached: true,
    env: childEnvironment({
      DATA_DIR: dataDir,
      ...Object.fromEntries(
        Object.entries(ports).map(([name, port]) => [
          PORT_VARIABLES[name as StackPort],
          String(port),
        ]),
      ),
      EMBEDDED_TEMPORAL: temporal,
      // A benchmark or a chaos run sends far more requests a second than one merchant may send.
      RATE_LIMIT_PER_SECOND: '1000000',
      // The payers of such a run send their addresses in X-Forwarded-For, as a proxy does.
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
  try {
    await waitFor('the system to start', READY_WITHIN_MS, () => {
      if (isGone) throw new Error(`The system did not start:\n${readFileSync(logFile, 'utf8')}`);
      return readFileSync(logFile, 'utf8').includes('Perennial is running') ? true : undefined;
    });
    return { start: await findRunningStart(dataDir), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
