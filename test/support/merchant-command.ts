import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { inject } from 'vitest';
import { bundledProgram } from '../../tools/embedded/program-bundle.ts';

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `npm run merchant -- …args` with `environment`. `input` is its standard input. */
export async function runMerchantCommand(
  environment: Readonly<Record<string, string>>,
  args: readonly string[],
  input = '',
): Promise<CommandResult> {
  const program = bundledProgram(inject('programFolder'), 'tools/scripts/merchant.ts');
  const child = spawn(process.execPath, [...program, ...args], {
    env: { ...process.env, ...environment },
  });
  const output = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await output;
  return { code: code as number, stdout, stderr };
}
