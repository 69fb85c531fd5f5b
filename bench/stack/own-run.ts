import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onShutdown } from '../../runtime/shutdown.ts';
import type { Closer } from '../../runtime/shutdown.ts';
import { print, styled } from '../../scripts/client/terminal.ts';

/** Longest time for all closers together. */
const STOP_WITHIN_MS = 90_000;

/** Exit code of a run that a signal ended. */
const INTERRUPTED = 130;

/**
 * Runs a benchmark with a temporary data folder, and ends this process with its exit code. At the end,
 * or on a signal, it closes everything in `closers` in order. Then it removes the folder. With `keep`,
 * or after a failure, the folder stays.
 */
export function runOnOwnStack(
  name: string,
  keep: boolean,
  main: (dataDir: string, closers: Closer[]) => Promise<number>,
): void {
  const dataDir = mkdtempSync(join(tmpdir(), `perennial-${name}-`));
  const closers: Closer[] = [];
  let isStopping = false;
  let isFinished = false;
  let keepsFolder = keep;
  const shutdown = onShutdown(
    [
      {
        name: 'benchmark',
        timeoutMs: STOP_WITHIN_MS - 5_000,
        close: () => closeAll(closers),
      },
      {
        name: 'data folder',
        close: () => {
          if (keepsFolder) print(`  data and logs are kept in ${dataDir}\n`);
          else rmSync(dataDir, { recursive: true, force: true });
        },
      },
    ],
    {
      withinMs: STOP_WITHIN_MS,
      exit: (code) => process.exit(isFinished ? code : INTERRUPTED),
      logger: {
        info: () => (isStopping = true),
        error: (details: unknown) => print(styled('red', `  ${JSON.stringify(details)}`)),
      },
    },
  );
  void (async () => {
    let code = 1;
    try {
      code = await main(dataDir, closers);
    } catch (error) {
      // After a signal the servers stop, so an error is expected.
      if (!isStopping) {
        keepsFolder = true;
        print(`\n${styled('red', 'failed')}: ${textOf(error)}\n`);
      }
    }
    isFinished = !isStopping;
    shutdown('finished', code);
  })();
}

/**
 * Closes and removes all closers from the front: the first one depends on the later ones.
 *
 * @throws Error naming every closer that failed.
 */
export async function closeAll(closers: Closer[]): Promise<void> {
  const failures: string[] = [];
  for (let closer = closers.shift(); closer !== undefined; closer = closers.shift()) {
    try {
      await closer.close();
    } catch (error) {
      failures.push(`${closer.name}: ${textOf(error)}`);
    }
  }
  if (failures.length > 0) throw new Error(failures.join('; '));
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isBug = error instanceof TypeError || error instanceof ReferenceError;
  return isBug ? (error.stack ?? error.message) : error.message;
}
