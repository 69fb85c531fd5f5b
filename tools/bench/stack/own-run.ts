import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Option } from 'commander';
import type { Command } from 'commander';
import { Agent, setGlobalDispatcher } from 'undici';
import { coreTime, stolenPercent } from '../../proof/chaos/machine.ts';
import { print, runScript } from '../../../cli/command-line/terminal.ts';
import { readRunConditions } from '../measure/machine.ts';
import type { RunConditions } from '../measure/machine.ts';
import { closeAll } from './child-process.ts';
import type { Closers } from './child-process.ts';
import type { TemporalKind } from './measured-stack.ts';

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
  readonly closers: Closers;
  readonly runConditions: RunConditions;
  readonly say: (line: string) => void;
}

/**
 * Calls `closers` at the end, and exits: with 1 for problems. A failure keeps the data folder. After a signal every part
 * stops by itself, because this process ends.
 */
export async function runOnOwnStack(
  name: string,
  { json, keep, ...options }: OwnRunOptions,
  measure: (run: OwnRun) => Promise<{ figures: object; problems: readonly string[] }>,
): Promise<never> {
  return runScript(async () => {
    // Limits the connections from this process to one server.
    setGlobalDispatcher(new Agent({ connections: 256, pipelining: 1 }));
    const dataDir = mkdtempSync(join(tmpdir(), `perennial-${name}-`));
    const closers: Closers = [];
    const runConditions = readRunConditions();
    const coresBefore = coreTime();
    const say = (line: string): void => print(`· ${line}`);
    let keepsFolder = true;
    try {
      const { figures, problems } = await measure({ dataDir, closers, runConditions, say });
      if (json !== undefined) {
        const stolen = stolenPercent(coresBefore);
        const run = { surroundings: runConditions, stolenPercent: stolen, arguments: options };
        writeFileSync(json, `${JSON.stringify({ ...run, ...figures }, null, 2)}\n`);
      }
      keepsFolder = keep === true;
      return problems.length === 0 ? 0 : 1;
    } finally {
      await closeAll(closers);
      if (keepsFolder) print(`  data and logs are kept in ${dataDir}\n`);
      else rmSync(dataDir, { recursive: true, force: true });
    }
  });
}
