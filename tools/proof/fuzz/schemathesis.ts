import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cachedFolder } from '../../embedded/cache.ts';
import { runCommand } from '../../embedded/run-command.ts';
import type { Report } from '../../embedded/progress.ts';
import { childEnvironment } from '../../../runtime/environment.ts';
import { readCalls } from './calls.ts';
import type { Call } from './calls.ts';

const VERSION = '4.32.5';
const INSTALL_TIMEOUT_MS = 10 * 60_000;
/** Extra time of a run in ms, for loading, shrinking a failure and writing the report. */
const OVERTIME_MS = 120_000;

/** Installs Schemathesis once, in a virtual environment in `cacheDir`. Throws CommandError. */
export async function schemathesis(cacheDir: string, report: Report): Promise<string> {
  const folder = await cachedFolder(cacheDir, `schemathesis-${VERSION}`, async (place) => {
    report(`installing Schemathesis ${VERSION} (about a minute, once)`);
    const timeoutMs = INSTALL_TIMEOUT_MS;
    await runCommand('python3', ['-m', 'venv', place], { timeoutMs });
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
    await runCommand(python(place), [...pip, `schemathesis==${VERSION}`], { timeoutMs });
  });
  return python(folder);
}

/** The environment's scripts contain the path of its temporary folder, so only its Python can be called. */
function python(folder: string): string {
  return join(folder, 'bin', 'python');
}

export interface FuzzRun {
  readonly python: string;
  readonly documentUrl: string;
  readonly credential: { readonly keyId: string; readonly secret: string };
  readonly seconds: number;
  readonly select: readonly string[];
  readonly dictionaries: string;
}

/** The exit code is 1 if Schemathesis found a failure, 124 if it did not end in time. */
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

/** `positive_data_acceptance` is off: the API must refuse much that is valid by its schema, such as unknown ids. */
function configOf({ seconds, dictionaries }: FuzzRun, reportFile: string): string {
  return `
max-time = ${seconds}
# With two threads, some Python versions crash.
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
# Generate no parameters that the document does not know.
allow-extra-parameters = false

[checks.positive_data_acceptance]
enabled = false

[reports.ndjson]
enabled = true
path = ${JSON.stringify(reportFile)}

${dictionaries}
`;
}
