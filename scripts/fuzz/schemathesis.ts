import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cachedFolder } from '../../embedded/cache.ts';
import { runCommand } from '../../embedded/commands.ts';
import type { Report } from '../../embedded/progress.ts';
import { childEnvironment } from '../../runtime/config.ts';
import { readCalls } from './calls.ts';
import type { Call } from './calls.ts';

const VERSION = '4.32.5';
const INSTALL_TIMEOUT_MS = 10 * 60_000;
/** What a run may take beyond its time: loading, shrinking a failure, writing the report. */
const OVERTIME_MS = 120_000;

/**
 * Python with Schemathesis in a virtual environment of its own, in our cache. Installed from the
 * Python registry the first time.
 *
 * @throws CommandError when there is no Python 3 with venv, or the registry cannot be reached.
 */
export async function schemathesis(cacheDir: string, report: Report): Promise<string> {
  const folder = await cachedFolder(cacheDir, `schemathesis-${VERSION}`, report, async (place) => {
    report(`installing Schemathesis ${VERSION} (about a minute, once)`);
    const timeoutMs = INSTALL_TIMEOUT_MS;
    await runCommand('python3', ['-m', 'venv', place], { timeoutMs });
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
    await runCommand(python(place), [...pip, `schemathesis==${VERSION}`], { timeoutMs });
  });
  return python(folder);
}

/** Started as itself, not by its scripts: those name the folder it was made in. */
function python(folder: string): string {
  return join(folder, 'bin', 'python');
}

export interface FuzzRun {
  readonly python: string;
  readonly documentUrl: string;
  readonly credential: { readonly keyId: string; readonly secret: string };
  readonly seconds: number;
  /** Arguments that pick operations. */
  readonly select: readonly string[];
  /** TOML: real values to use among generated ones. */
  readonly dictionaries: string;
}

/**
 * Runs Schemathesis with its output on our terminal. Answers its exit code (1: it found something;
 * 124: it did not come to an end) and what was called.
 */
export async function fuzz(run: FuzzRun): Promise<{ exitCode: number; calls: Call[] }> {
  const folder = await mkdtemp(join(tmpdir(), 'perennial-fuzz-'));
  try {
    const configFile = join(folder, 'schemathesis.toml');
    const reportFile = join(folder, 'calls.ndjson');
    await writeFile(configFile, configOf(run, reportFile));
    const exitCode = await runToEnd(run, folder, [
      '-m',
      'schemathesis.cli',
      '--config-file',
      configFile,
      'run',
      run.documentUrl,
      ...run.select,
    ]);
    return { exitCode, calls: await readCalls(reportFile) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function runToEnd(run: FuzzRun, cwd: string, args: readonly string[]): Promise<number> {
  const child = spawn(run.python, args, {
    cwd,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: childEnvironment({
      FUZZ_KEY_ID: run.credential.keyId,
      FUZZ_SECRET: run.credential.secret,
    }),
  });
  const onExit = (): void => void child.kill('SIGTERM');
  process.once('exit', onExit);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), run.seconds * 1_000 + OVERTIME_MS);
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      process.off('exit', onExit);
      resolve(code ?? 124);
    });
  });
}

/**
 * Every check but one: that valid data is accepted. Much of what is right by itself is refused for
 * what it meets: an amount below its currency's minimum, a record that is not there, a status.
 */
function configOf({ seconds, dictionaries }: FuzzRun, reportFile: string): string {
  return `
max-time = ${seconds}
# Two threads parse Python at once, and some versions of it do not survive that.
workers = 1
continue-on-failure = true
request-timeout = 40
rate-limit = "auto"
warnings = false

[cache]
enabled = false

[auth.basic]
username = "\${FUZZ_KEY_ID}"
password = "\${FUZZ_SECRET}"

[generation]
max-examples = 40
database = ":memory:"
# Unknown parameters are ignored, as unknown fields are.
allow-extra-parameters = false

[checks.positive_data_acceptance]
enabled = false

[reports.ndjson]
enabled = true
path = ${JSON.stringify(reportFile)}

${dictionaries}
`;
}
