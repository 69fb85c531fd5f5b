import { exitsWithParent } from './config.ts';
import type { Logger } from './logger.ts';
import { within } from './time-limit.ts';

export interface Closer {
  readonly name: string;
  readonly close: () => unknown;
  /** Time limit of `close` in ms. After this time the next closer runs. Default 5,000. */
  readonly timeoutMs?: number;
}

/** Longest time in ms from the stop signal to the exit; a process manager must wait as long. */
export const STOP_WITHIN_MS = 60_000;

export interface ShutdownOptions {
  readonly logger: Pick<Logger, 'info' | 'error'>;
  /** Longest time for all closers together in ms. Default {@link STOP_WITHIN_MS}. */
  readonly withinMs?: number;
  /** For tests. Default `process.exit`. */
  readonly exit?: (code: number) => void;
}

const DEFAULT_CLOSER_TIMEOUT_MS = 5_000;

/** One Ctrl-C sends two signals, from the terminal and from npm; the second is ignored for 2 s. */
const REPEATED_SIGNAL_GRACE_MS = 2_000;

/**
 * On SIGTERM, SIGINT, SIGHUP, or the parent's end with `PERENNIAL_EXIT_WITH_PARENT`, closes the resources and exits:
 * 0, or 1 if a closer failed or was late. A second signal after 2 s exits at once.
 */
export function onShutdown(
  closers: readonly Closer[],
  options: ShutdownOptions,
): (reason: string, exitCode?: number) => void {
  const exit = options.exit ?? ((code: number) => process.exit(code));
  let startedAt: number | undefined;

  const shutdown = (reason: string, exitCode = 0): void => {
    if (startedAt !== undefined) return;
    startedAt = performance.now();
    void closeInOrder(closers, reason, options).then((allClosed) => {
      exit(allClosed ? exitCode : 1);
    });
  };

  const onSignal = (signal: NodeJS.Signals): void => {
    if (startedAt !== undefined && performance.now() - startedAt > REPEATED_SIGNAL_GRACE_MS) {
      exit(1);
      return;
    }
    shutdown(signal);
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, onSignal);
  if (exitsWithParent()) onParentGone(() => shutdown('parent process ended'));
  return shutdown;
}

function onParentGone(callback: () => void): void {
  for (const event of ['end', 'close', 'error']) process.stdin.on(event, callback);
  process.stdin.resume();
}

/** Sends the parent process `{ ready: true }`. Does nothing without an IPC channel to a parent. */
export function announceReady(): void {
  if (process.send === undefined) return;
  // Ignore a failed send, because the parent may have ended.
  process.send({ ready: true }, undefined, undefined, () => undefined);
}

async function closeInOrder(
  closers: readonly Closer[],
  reason: string,
  { logger, withinMs = STOP_WITHIN_MS }: ShutdownOptions,
): Promise<boolean> {
  logger.info({ reason }, 'stopping');
  const overAt = performance.now() + withinMs;
  let allClosed = true;
  for (const closer of closers) {
    const ownMs = closer.timeoutMs ?? DEFAULT_CLOSER_TIMEOUT_MS;
    const leftMs = Math.max(0, Math.round(overAt - performance.now()));
    const failure = await closeOne(closer, Math.min(ownMs, leftMs));
    if (failure === undefined) continue;
    allClosed = false;
    logger.error({ closer: closer.name, error: failure }, 'could not be closed cleanly');
  }
  logger.info({ reason, clean: allClosed }, 'stopped');
  return allClosed;
}

async function closeOne(closer: Closer, timeoutMs: number): Promise<string | undefined> {
  const close = async () => void (await closer.close());
  try {
    await within(timeoutMs, close(), () => new Error(`still open after ${timeoutMs} ms`));
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
