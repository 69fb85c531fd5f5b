import { fork } from 'node:child_process';
import { once } from 'node:events';
import { childEnvironment } from '../../../runtime/environment.ts';
import type { Closer } from '../../../runtime/shutdown.ts';

/** A program of the benchmark in a separate process, so that its CPU time can be measured separately. */
export interface ChildProgram {
  readonly pid: number;
  /** Throws if the answer takes longer than 30 s or the process ends first. */
  ask<Answer>(request: object): Promise<Answer>;
  stop(): Promise<void>;
}

const READY_WITHIN_MS = 60_000;
const ANSWER_WITHIN_MS = 30_000;
const STOP_WITHIN_MS = 5_000;

/** Waits for the child's first message. The child ends with this process, even by SIGKILL: its stdin is our pipe. */
export async function startChild(
  file: string,
  args: readonly string[],
  closers: Closer[],
): Promise<ChildProgram> {
  const child = fork(file, [...args], {
    execArgv: ['--import', 'tsx'],
    stdio: ['pipe', 'ignore', 'inherit', 'ipc'],
    serialization: 'advanced',
    // A separate process group: Ctrl-C reaches only this process, which stops the child.
    detached: true,
    env: childEnvironment({ PERENNIAL_EXIT_WITH_PARENT: '1' }),
  });
  child.stdin?.on('error', () => undefined);
  const gone = once(child, 'exit');
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
    await gone;
    clearTimeout(timer);
  };
  closers.unshift({ name: file, timeoutMs: STOP_WITHIN_MS + 1_000, close: stop });

  const waiting = new Map<number, (answer: unknown) => void>();
  const failAll = new Set<(error: Error) => void>();
  gone.then(
    () => {
      for (const fail of failAll) fail(new Error(`${file} has ended`));
    },
    () => undefined,
  );
  const within = async <Answer>(
    ms: number,
    start: (resolve: (answer: Answer) => void) => void,
  ): Promise<Answer> => {
    let timer: NodeJS.Timeout | undefined;
    let fail: (error: Error) => void = () => undefined;
    try {
      return await new Promise<Answer>((resolve, reject) => {
        fail = reject;
        failAll.add(fail);
        timer = setTimeout(() => reject(new Error(`${file} did not answer in ${ms} ms`)), ms);
        start(resolve);
      });
    } finally {
      clearTimeout(timer);
      failAll.delete(fail);
    }
  };

  await within<unknown>(READY_WITHIN_MS, (resolve) => child.once('message', resolve));
  child.on('message', (message: { id: number; answer: unknown }) => {
    waiting.get(message.id)?.(message.answer);
    waiting.delete(message.id);
  });
  let lastId = 0;
  return {
    pid: child.pid ?? 0,
    ask: <Answer>(request: object) =>
      within<Answer>(ANSWER_WITHIN_MS, (resolve) => {
        lastId += 1;
        waiting.set(lastId, (answer) => resolve(answer as Answer));
        child.send({ id: lastId, request });
      }),
    stop,
  };
}

/** In the child: answers every request of the parent with the result of `handle`. */
export function answerParent(handle: (request: unknown) => unknown): void {
  process.on('message', (message: { id: number; request: unknown }) => {
    void (async () => {
      const answer = await handle(message.request);
      process.send?.({ id: message.id, answer }, undefined, undefined, () => undefined);
    })();
  });
}
