import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { childEnvironment } from '../../runtime/environment.ts';
import { cachedFolder } from './cache.ts';
import { CommandError, runGo } from './commands.ts';
import { withStillWorking } from './progress.ts';
import type { Report } from './progress.ts';
import type { Service } from './services.ts';
import { ComponentMissingError, onPath } from './temporal-cli.ts';

/** Its OpenAPI document has API version 2026-08-26.dahlia, which `stripe` 22.6.2 sends. */
const VERSION = '0.203.0';
const GO_MODULE = `github.com/stripe/stripe-mock@v${VERSION}`;

const GO_TIMEOUT_MS = 10 * 60_000;
const READY_WITHIN_MS = 60_000;
const READY_POLL_MS = 50;

export interface StripeMockFiles {
  readonly program: string;
  /** Path of Stripe's OpenAPI 3.0 document, 8 MB of JSON, in the version that the program embeds. */
  readonly specFile: string;
}

/** Builds the program from its Go module, once. Throws ComponentMissingError. */
export async function stripeMockFiles(cacheDir: string, report: Report): Promise<StripeMockFiles> {
  const folder = await cachedFolder(
    cacheDir,
    `stripe-mock-${VERSION}`,
    report,
    async (building) => {
      await build(building, report).catch((error: unknown) => {
        throw error instanceof CommandError ? missing(error.message) : error;
      });
    },
  );
  return { program: join(folder, 'stripe-mock'), specFile: join(folder, 'spec3.json') };
}

async function build(folder: string, report: Report): Promise<void> {
  if ((await onPath('go')) === undefined) throw new CommandError('`go` is not on PATH');
  report(`building stripe-mock ${VERSION} from its Go module (about 13 s, once)`);
  await withStillWorking(report, 'building stripe-mock', () =>
    runGo(folder, ['install', '-ldflags=-s -w', GO_MODULE], GO_TIMEOUT_MS),
  );
  const listed = await runGo(folder, ['mod', 'download', '-json', GO_MODULE], GO_TIMEOUT_MS);
  const { Dir } = JSON.parse(listed) as { Dir: string };
  await copyFile(join(Dir, 'embedded/openapi/spec3.json'), join(folder, 'spec3.json'));
}

function missing(reason: string): ComponentMissingError {
  return new ComponentMissingError(
    [
      'No stripe-mock found, which the Stripe double needs. Install Go 1.24 or newer, with access to a',
      `Go module proxy; it builds ${GO_MODULE} once. This attempt failed:`,
      `  - ${reason.replaceAll('\n', '\n    ')}`,
    ].join('\n'),
  );
}

export function stripeMockService(program: string, port: number, logFile: string): Service {
  return {
    name: 'stripe-mock',
    program: () => ({ command: program, args: argumentsFor(port) }),
    logFile,
    isReady: () => answers(`http://127.0.0.1:${port}`),
    readyWithinMs: READY_WITHIN_MS,
    stopSteps: [{ signal: 'SIGKILL', waitMs: 1_000 }],
    isOurProgram: false,
  };
}

/** Without an address for HTTPS stripe-mock would also listen on port 12112 of every interface. */
function argumentsFor(port: number): string[] {
  const addresses = ['-http-addr', `127.0.0.1:${port}`, '-https-addr', '127.0.0.1:0'];
  return [...addresses, '-strict-version-check'];
}

export interface StripeMock {
  readonly url: string;
  stop(): Promise<void>;
}

/** It refuses another `Stripe-Version`, and ends with this process, also after a kill. Throws with its output. */
export async function startStripeMock(program: string): Promise<StripeMock> {
  const child = spawn('sh', ['-c', WITH_PARENT, program, ...argumentsFor(0)], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: childEnvironment({}),
  });
  const gone = new Promise<void>((resolve) => {
    child.once('error', () => resolve());
    child.once('close', () => resolve());
  });
  const stop = async (): Promise<void> => {
    child.stdin.destroy();
    await gone;
  };
  child.stdin.on('error', () => undefined);
  try {
    const url = await announcedUrl(child, gone);
    // The child process must not keep this process alive.
    child.unref();
    return { url, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Ends the program when our stdin closes. A background command gets /dev/null as stdin, so stdin is copied to 3. */
const WITH_PARENT = `
exec 3<&0
"$0" "$@" </dev/null 3<&- &
program=$!
(cat <&3 >/dev/null; kill $program 2>/dev/null) &
exec 3<&-
wait $program
`;

async function announcedUrl(child: ChildProcess, gone: Promise<void>): Promise<string> {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      // The program also prints a line for each request.
      if (output.length < 10_000) output += text;
    });
  }
  let hasEnded = false;
  void gone.then(() => (hasEnded = true));
  const deadline = performance.now() + READY_WITHIN_MS;
  for (;;) {
    const url = /Listening for HTTP at address: (\S+)/.exec(output)?.[1];
    if (url !== undefined && (await answers(`http://${url}`))) return `http://${url}`;
    if (hasEnded) throw new Error(`stripe-mock ended:\n${output}`);
    if (performance.now() > deadline) {
      throw new Error(`stripe-mock is not ready after ${READY_WITHIN_MS / 1_000} s:\n${output}`);
    }
    await new Promise((resolve) => setTimeout(resolve, READY_POLL_MS));
  }
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/v1/account`, {
      headers: { authorization: 'Bearer sk_test_ready' },
      signal: AbortSignal.timeout(1_000),
    });
    await response.body?.cancel();
    return response.status === 200;
  } catch {
    return false;
  }
}
