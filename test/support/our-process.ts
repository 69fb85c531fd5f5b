import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { inject } from 'vitest';
import { bundledProgram } from '../../tools/embedded/program-bundle.ts';
import type { ProgramFile } from '../../tools/embedded/program-bundle.ts';

/** A program of this project in its own process. */
export interface OurProcess {
  /** Exit code, signal and output. Resolves when the process has ended. */
  readonly gone: Promise<{ code: number | null; signal: NodeJS.Signals | null; output: string }>;
  stop(): Promise<void>;
  /** Kills the process by SIGKILL. */
  kill(): void;
}

/** Starts a bundled program and waits until it is ready. The program ends when this process ends. */
export function startOurProcess(
  file: ProgramFile,
  environment: Readonly<Record<string, string>>,
): Promise<OurProcess> {
  return startNode(bundledProgram(inject('programFolder'), file), environment);
}

/**
 * Runs Node and waits until its program is ready. The program ends when this process ends.
 *
 * @throws Error with the program's output when the program ends before it is ready.
 */
export async function startNode(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<OurProcess> {
  const child = spawn(process.execPath, [...args], {
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
  if (!isReady) throw new Error(`node ${args.join(' ')} ended:\n${(await gone).output}`);
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await gone;
  };
  return { gone, stop, kill: () => void child.kill('SIGKILL') };
}
