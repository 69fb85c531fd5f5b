import { runProgram } from './run-command.ts';
import type { TestEnvironment } from './test-environment.ts';

/** What `verify --adopt` answers if nothing is lost and every invariant holds. */
export const NOTHING_MISSING = {
  code: 0,
  lines: ['  The rows have everything that the gateways have.'],
};

/** Runs `npm run verify` on the environment. Returns the exit code, and the lines before those of the invariants. */
export async function verify(env: TestEnvironment, ...args: string[]) {
  const { code, stdout } = await runProgram('cli/verify.ts', env.variables, args);
  const lines = stdout.split('\n').slice(1);
  const end = lines.findIndex((line) => / 1\. every owed/.test(line));
  return { code, lines: lines.slice(0, end) };
}
