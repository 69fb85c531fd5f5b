import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onShutdown } from '../../runtime/shutdown.ts';
import type { Closer } from '../../runtime/shutdown.ts';
import { print, styled } from '../../scripts/client/terminal.ts';

/** Everything together may take so long to stop. */
const STOP_WITHIN_MS = 90_000;

/** Exit code of a run that a signal ended. */
const INTERRUPTED = 130;

/**
 * Runs a benchmark with a data folder of its own, and ends this process with its exit code. What it
 * pushes to `closers` is closed in order, at its end as on a signal; then the folder is removed. With
 * `keep`, and after a failure, the folder stays.
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
        name: 'what was started',
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
      // After a signal everything it talks to goes away: that is no failure of its own.
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
 * Closes and removes all, from the front: what was started last uses what was started before it.
 *
 * @throws Error naming every one that could not be closed.
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
