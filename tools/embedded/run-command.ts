import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { childEnvironment } from '../../runtime/environment.ts';

export interface CommandOptions {
  readonly timeoutMs: number;
  readonly cwd?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly uid?: number;
  readonly gid?: number;
  /** Ends the program early. */
  readonly signal?: AbortSignal;
}

export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** Maximum length of a failed command's output in the error. The start of the output is cut off. */
const OUTPUT_TAIL_CHARACTERS = 1_500;

const execute = promisify(execFile);

/** Returns stdout. Throws CommandError if the program is missing, fails, or is killed after `timeoutMs`. */
export async function runCommand(
  command: string,
  args: readonly string[],
  { timeoutMs, environment = {}, ...place }: CommandOptions,
): Promise<string> {
  const running = execute(command, [...args], {
    ...place,
    env: childEnvironment(environment),
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
    maxBuffer: Infinity,
  });
  running.child.stdin?.end();
  // If this process exits, the child must not continue a long build.
  const onExit = (): void => void running.child.kill('SIGTERM');
  process.once('exit', onExit);
  try {
    return (await running).stdout;
  } catch (error) {
    const { killed, code, signal, message, stdout, stderr } = error as Failure;
    const outcome = typeof code === 'string' ? message : `ended with ${code ?? signal}`;
    const why = killed ? `took longer than ${timeoutMs} ms` : outcome;
    const output = `${stdout}\n${stderr}`.slice(-OUTPUT_TAIL_CHARACTERS).trim();
    throw new CommandError(`${command} ${why}${output && `\n${output}`}`);
  } finally {
    process.off('exit', onExit);
  }
}

/** `code` is a text if the program could not be started or was aborted, and a number if it failed. */
interface Failure extends Error {
  readonly killed: boolean;
  readonly code: string | number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}
