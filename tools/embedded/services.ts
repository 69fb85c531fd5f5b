import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, statSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { childEnvironment } from '../../runtime/environment.ts';
import { endProcess, identify } from './process-identity.ts';
import type { ProcessIdentity } from './process-identity.ts';
import type { ProcessTable } from './process-table.ts';
import type { Report } from './progress.ts';

/** A program to run. Without `uid` and `gid` it runs as the current account. */
export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly uid?: number;
  readonly gid?: number;
}

export interface Service {
  readonly name: string;
  readonly program: () => Program;
  readonly environment?: Readonly<Record<string, string>>;
  readonly logFile: string;
  /** Called every 100 ms. `saysReady`: the process has sent its ready message over IPC. */
  readonly isReady: (saysReady: boolean) => Promise<boolean>;
  readonly readyWithinMs: number;
  readonly beforeLaunch?: () => Promise<void>;
  /** After each signal the supervisor waits up to `waitMs` for the process to end. Default: SIGTERM 4 s, SIGKILL 2 s. */
  readonly stopSteps?: readonly { readonly signal: NodeJS.Signals; readonly waitMs: number }[];
  /** True for our own programs, which exit when their stdin closes and thus end with this process. Default: false. */
  readonly isOurProgram?: boolean;
}

export type SupervisedService = ReturnType<typeof supervise>;

export interface ServiceSurroundings {
  readonly table?: ProcessTable;
  readonly report: Report;
}

/** First wait in ms before a restart. The wait doubles if the process ends again within 60 s. */
const RESTART_FIRST_MS = 250;
const RESTART_MOST_MS = 5_000;
/** If a process ran at least this long, the wait before its next restart is RESTART_FIRST_MS again. */
const RECOVERED_AFTER_MS = 60_000;

const READY_POLL_MS = 100;

const STOP_STEPS = [
  { signal: 'SIGTERM', waitMs: 4_000 },
  { signal: 'SIGKILL', waitMs: 2_000 },
] as const;

/** Postgres and Temporal choose some ports themselves, which another process may have taken. */
const FOREIGN_LAUNCHES = 3;

/** Restarts the process whenever it ends, after 0.25 s, doubling to 5 s while it runs less than 60 s. */
export function supervise(service: Service, { table, report }: ServiceSurroundings) {
  let child: ChildProcess | undefined;
  let identity: ProcessIdentity | undefined;
  let isStopping = false;
  let restartTimer: NodeJS.Timeout | undefined;
  let restartWaitMs = RESTART_FIRST_MS;

  const launch = async (): Promise<ChildProcess> => {
    await service.beforeLaunch?.();
    if (isStopping) throw new Error(`${service.name} is being stopped`);
    const launched = spawnService(service);
    child = launched;
    identity = launched.pid === undefined ? undefined : identify(launched.pid);
    if (launched.pid !== undefined) table?.add(service.name, launched.pid);
    return launched;
  };

  const startAgain = (what: string): void => {
    if (isStopping) return;
    report(`${service.name} ${what}; starting it again in ${restartWaitMs / 1_000} s`);
    restartTimer = setTimeout(() => void restart(), restartWaitMs);
    restartWaitMs = Math.min(restartWaitMs * 2, RESTART_MOST_MS);
  };

  const startAgainWhenItDies = (launched: ChildProcess): void => {
    const startedAt = performance.now();
    launched.once('exit', (code, signal) => {
      if (performance.now() - startedAt > RECOVERED_AFTER_MS) restartWaitMs = RESTART_FIRST_MS;
      startAgain(`died (${signal ?? `code ${code}`})`);
    });
  };

  const restart = async (): Promise<void> => {
    let launched: ChildProcess;
    try {
      launched = await launch();
    } catch (error) {
      startAgain(`could not be started (${errorLine(error)})`);
      return;
    }
    startAgainWhenItDies(launched);
    try {
      await waitUntilReady(service, launched);
      report(`${service.name} is back (pid ${launched.pid})`);
    } catch (error) {
      if (!isStopping) report(errorLine(error));
    }
  };

  /** Stops the service in any state and does not restart it. Resolves when its process has ended. */
  const stop = async (): Promise<void> => {
    isStopping = true;
    clearTimeout(restartTimer);
    child?.stdin?.destroy();
    if (identity !== undefined) await endProcess(identity, service.stopSteps ?? STOP_STEPS);
    table?.remove(service.name);
  };

  const launchUntilReady = async (launchesLeft: number): Promise<ChildProcess> => {
    const launched = await launch();
    try {
      await waitUntilReady(service, launched);
      return launched;
    } catch (error) {
      const hasDied = launched.exitCode !== null || launched.signalCode !== null;
      if (!hasDied || isStopping || launchesLeft === 1) throw error;
      report(`${errorLine(error)}\nstarting ${service.name} once more`);
      return launchUntilReady(launchesLeft - 1);
    }
  };

  /** Resolves when ready; from then on a process that ends is restarted. A failed launch's error has the end of its log. */
  const start = async (): Promise<void> => {
    try {
      startAgainWhenItDies(await launchUntilReady(service.isOurProgram ? 1 : FOREIGN_LAUNCHES));
    } catch (error) {
      await stop();
      throw error;
    }
  };

  return { name: service.name, start, stop };
}

function spawnService(service: Service): ChildProcess {
  mkdirSync(dirname(service.logFile), { recursive: true });
  rotateLog(service.logFile);
  const { command, args, ...account } = service.program();
  const log = openSync(service.logFile, 'a');
  try {
    const child = spawn(command, [...args], {
      ...account,
      cwd: service.isOurProgram ? process.cwd() : '/',
      // A separate process group: Ctrl-C in the terminal reaches only this process, which stops the services
      // in order.
      detached: true,
      stdio: service.isOurProgram ? ['pipe', log, log, 'ipc'] : ['ignore', log, log],
      env: childEnvironment({
        ...service.environment,
        ...(service.isOurProgram ? { PERENNIAL_EXIT_WITH_PARENT: '1' } : {}),
      }),
    });
    // A write to a child that is ending fails. Without a handler the error would end this process.
    child.stdin?.on('error', () => undefined);
    return child;
  } finally {
    closeSync(log);
  }
}

async function waitUntilReady(service: Service, child: ChildProcess): Promise<void> {
  let saysReady = false;
  let death: string | undefined;
  child.on('message', () => (saysReady = true));
  child.once('error', (error) => (death = `could not be started: ${error.message}`));
  child.once('exit', (code, signal) => (death ??= `ended with ${signal ?? `code ${code}`}`));
  const deadline = performance.now() + service.readyWithinMs;
  while (!(await service.isReady(saysReady).catch(() => false))) {
    if (death !== undefined) throw failed(service, death);
    if (performance.now() > deadline) {
      throw failed(service, `is not ready after ${service.readyWithinMs / 1_000} s`);
    }
    await new Promise((resolve) => setTimeout(resolve, READY_POLL_MS));
  }
  if (death !== undefined) throw failed(service, death);
}

function failed(service: Service, what: string): Error {
  const log = relative(process.cwd(), service.logFile);
  return new Error(`${service.name} ${what}. The end of ${log}:\n${endOf(service.logFile)}`);
}

/** The last 12 lines of the log, after the line of a Go program's panic before them. */
function endOf(file: string): string {
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  const reason = lines.slice(-200, -12).findLast((line) => /^(panic|fatal error):/.test(line));
  const shown = [...(reason === undefined ? [] : [reason, '…']), ...lines.slice(-12)];
  return shown.map((line) => `  ${line.slice(0, 500)}`).join('\n');
}

function errorLine(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Log size in bytes. A larger log is renamed to `<log>.1` before the next launch. */
const ROTATE_ABOVE_BYTES = 20_000_000;

function rotateLog(logFile: string): void {
  const size = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
  if (size > ROTATE_ABOVE_BYTES) renameSync(logFile, `${logFile}.1`);
}
