import { execFile } from 'node:child_process';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { inject } from 'vitest';
import { bundledProgram } from '../../tools/embedded/program-bundle.ts';
import type { ProgramFile } from '../../tools/embedded/program-bundle.ts';
import type { Surroundings } from '../../cli/command-line/options.ts';

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs an operator's command with `environment` in this process. `input` is its standard input. */
export async function runCommand(
  command: (args: readonly string[], surroundings: Surroundings) => Promise<number>,
  environment: Readonly<Record<string, string>>,
  args: readonly string[],
  input = '',
): Promise<CommandResult> {
  const [stdout, stderr]: [string[], string[]] = [[], []];
  const code = await command(args, {
    environment: { ...process.env, ...environment },
    input: Readable.from(input),
    print: (line) => stdout.push(`${line}\n`),
    printError: (line) => stderr.push(`${line}\n`),
  });
  return { code, stdout: stdout.join(''), stderr: stderr.join('') };
}

/** Runs the program of an operator's command with `environment` in a process of its own. */
export async function runProgram(
  file: ProgramFile,
  environment: Readonly<Record<string, string>>,
  args: readonly string[],
): Promise<CommandResult> {
  const program = [...bundledProgram(inject('programFolder'), file), ...args];
  return promisify(execFile)(process.execPath, program, {
    env: { ...process.env, ...environment },
  }).then(
    (result) => ({ code: 0, ...result }),
    ({ code, stdout, stderr }: CommandResult) => ({ code, stdout, stderr }),
  );
}
