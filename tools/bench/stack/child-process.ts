import { fork } from 'node:child_process';
import { once } from 'node:events';
import { childEnvironment } from '../../../runtime/environment.ts';

/** Functions that stop what a run started, the latest first. */
export type Closers = (() => Promise<unknown>)[];

/** Calls all closers in order and empties the list. */
export async function closeAll(closers: Closers): Promise<void> {
  for (const close of closers.splice(0)) await close();
}

const READY_WITHIN_MS = 60_000;
const STOP_WITHIN_MS = 5_000;

/**
 * Starts a program of the benchmark in a separate process, so that its CPU time can be measured separately.
 * Waits for the child's first message, and calls `onMessage` with each later one. The child ends with this process, even by
 * SIGKILL: its stdin is our pipe.
 */
export async function startChild(
  file: string,
  args: readonly string[],
  closers: Closers,
  onMessage: (message: unknown) => void,
) {
  const child = fork(file, [...args], {
    execArgv: ['--import', 'tsx'],
    stdio: ['pipe', 'ignore', 'inherit', 'ipc'],
    // A separate process group: Ctrl-C reaches only this process, which stops the child.
    detached: true,
    env: childEnvironment({ PERENNIAL_EXIT_WITH_PARENT: '1' }),
  });
  child.stdin?.on('error', () => undefined);
  const gone = once(child, 'exit');
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
    await gone;
    clearTimeout(timer);
  };
  closers.unshift(stop);
  const hasEnded = gone.then(() => Promise.reject(new Error(`${file} has ended`)));
  hasEnded.catch(() => undefined);
  const signal = AbortSignal.timeout(READY_WITHIN_MS);
  await Promise.race([once(child, 'message', { signal }), hasEnded]);
  child.on('message', (message) => onMessage(message));
  return { pid: child.pid ?? 0, stop };
}

/** In the child: sends a message to the parent. */
export function tellParent(message: object): void {
  process.send?.(message, undefined, undefined, () => undefined);
}
