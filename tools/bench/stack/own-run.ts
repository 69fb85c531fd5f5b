import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Option } from 'commander';
import type { Command } from 'commander';
import { Agent, setGlobalDispatcher } from 'undici';
import { coreTime, stolenPercent } from '../../proof/chaos/machine.ts';
import { onShutdown } from '../../../runtime/shutdown.ts';
import type { Closer } from '../../../runtime/shutdown.ts';
import { print, styled } from '../../scripts/client/terminal.ts';
import { readRunConditions } from '../measure/machine.ts';
import type { RunConditions } from '../measure/machine.ts';
import type { TemporalKind } from './measured-stack.ts';

/** Time limit in ms for all closers (functions that stop a part of the stack) together. */
const STOP_WITHIN_MS = 90_000;

/** Exit code of a run that a signal ended. */
const INTERRUPTED = 130;

export interface OwnRunOptions {
  readonly temporal: TemporalKind;
  readonly json?: string;
  readonly keep?: boolean;
}

export function withOwnRunOptions(program: Command): Command {
  return program
    .addOption(
      new Option('--temporal <kind>', 'dev: dev server with a state file; cluster: on Postgres')
        .choices(['dev', 'cluster'])
        .default('dev'),
    )
    .option('--json <file>', 'write every figure as JSON')
    .option('--keep', 'keep the data folder');
}

export interface OwnRun {
  readonly dataDir: string;
  readonly closers: Closer[];
  readonly runConditions: RunConditions;
  readonly say: (line: string) => void;
}

/** Calls `closers` at the end or on a signal, and exits: with 1 for problems. A failure keeps the data folder. */
export function runOnOwnStack(
  name: string,
  { json, keep, ...options }: OwnRunOptions,
  measure: (run: OwnRun) => Promise<{ figures: object; problems: readonly string[] }>,
): void {
  const main = async (dataDir: string, closers: Closer[]): Promise<number> => {
    // Limits the connections from this process to one server.
    setGlobalDispatcher(new Agent({ connections: 256, pipelining: 1 }));
    const runConditions = readRunConditions();
    const coresBefore = coreTime();
    const say = (line: string): void => print(`· ${line}`);
    const { figures, problems } = await measure({ dataDir, closers, runConditions, say });
    if (json !== undefined) {
      const stolen = stolenPercent(coresBefore);
      const run = { surroundings: runConditions, stolenPercent: stolen, arguments: options };
      writeFileSync(json, `${JSON.stringify({ ...run, ...figures }, null, 2)}\n`);
    }
    return problems.length === 0 ? 0 : 1;
  };
  const dataDir = mkdtempSync(join(tmpdir(), `perennial-${name}-`));
  const closers: Closer[] = [];
  let isStopping = false;
  let isFinished = false;
  let keepsFolder = keep === true;
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

/** Calls all closers in order and empties the list. Throws an error that names each that failed. */
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
