import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { childEnvironment } from '../../runtime/environment.ts';

export interface CommandOptions {
  readonly timeoutMs: number;
  readonly cwd?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly uid?: number;
  readonly gid?: number;
}

export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** Maximum length of a failed command's output in the error. The start of the output is cut off. */
const OUTPUT_TAIL_CHARACTERS = 1_500;

const KILL_AFTER_MS = 3_000;

/** Returns stdout. Throws CommandError if the program is missing, fails, or is killed after `timeoutMs`. */
export async function runCommand(
  command: string,
  args: readonly string[],
  options: CommandOptions,
): Promise<string> {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: childEnvironment(options.environment ?? {}),
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.uid === undefined ? {} : { uid: options.uid }),
    ...(options.gid === undefined ? {} : { gid: options.gid }),
  });
  let stdout = '';
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    output = (output + text).slice(-OUTPUT_TAIL_CHARACTERS);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-OUTPUT_TAIL_CHARACTERS);
  });

  let endedFor: string | undefined;
  let killTimer: NodeJS.Timeout | undefined;
  const end = (reason: string): void => {
    endedFor ??= reason;
    child.kill('SIGTERM');
    killTimer ??= setTimeout(() => child.kill('SIGKILL'), KILL_AFTER_MS);
  };
  // If this process exits, the child must not continue a long build.
  const onExit = (): void => void child.kill('SIGTERM');
  const timer = setTimeout(
    () => end(`took longer than ${options.timeoutMs} ms`),
    options.timeoutMs,
  );
  process.once('exit', onExit);

  try {
    const failure = await new Promise<string | undefined>((resolve) => {
      child.once('error', (error) => resolve(`could not be started: ${error.message}`));
      child.once('close', (code, signal) =>
        resolve(code === 0 ? undefined : `ended with ${code ?? signal}`),
      );
    });
    if (endedFor === undefined && failure === undefined) return stdout;
    throw new CommandError(`${command} ${endedFor ?? failure}${output && `\n${output.trim()}`}`);
  } finally {
    clearTimeout(timer);
    clearTimeout(killTimer);
    process.off('exit', onExit);
  }
}

/** Installs into `folder`, outside the checkout, so that no go.mod or go.work of another project applies. */
export function runGo(folder: string, args: readonly string[], timeoutMs: number): Promise<string> {
  const environment = { GOBIN: folder, CGO_ENABLED: '0' };
  return runCommand('go', args, { timeoutMs, cwd: tmpdir(), environment });
}
