import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** A program of this project as a process of its own, to be killed. */
export interface OurProcess {
  /** How it ended, with what it wrote: resolves when it is gone. */
  readonly gone: Promise<{ code: number | null; signal: NodeJS.Signals | null; output: string }>;
  stop(): Promise<void>;
}

/**
 * Starts a program and waits until it says that it does its work. It ends with this process.
 *
 * @throws Error with its output when it ends before that.
 */
export async function startOurProcess(
  file: string,
  environment: Readonly<Record<string, string>>,
): Promise<OurProcess> {
  const child = spawn(process.execPath, ['--import', 'tsx', file], {
    stdio: ['pipe', 'pipe', 'pipe', 'ipc'],
    env: { ...process.env, ...environment, PERENNIAL_EXIT_WITH_PARENT: '1' },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  const gone = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
    output,
  }));
  const isReady = await Promise.race([
    once(child, 'message').then(() => true),
    gone.then(() => false),
  ]);
  if (!isReady) throw new Error(`${file} ended:\n${output}`);
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await gone;
  };
  return { gone, stop };
}
