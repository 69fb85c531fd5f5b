import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { inject } from 'vitest';
import { bundledProgram } from '../../tools/embedded/program-bundle.ts';
import type { TestEnvironment } from './test-environment.ts';

/** Runs `npm run verify` on the environment. Returns the exit code, and the lines before those of the invariants. */
export async function verify(env: TestEnvironment, ...args: string[]) {
  const program = bundledProgram(inject('programFolder'), 'tools/scripts/verify.ts');
  const settings = { ...process.env, ...env.variables };
  const { code, stdout } = await promisify(execFile)(process.execPath, [...program, ...args], {
    env: settings,
  }).then(
    (result) => ({ code: 0, ...result }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
  const lines = stdout.split('\n').slice(1);
  return {
    code,
    lines: lines.slice(
      0,
      lines.findIndex((line) => / 1\. every owed/.test(line)),
    ),
  };
}
