import { constants, existsSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { EmbeddedConfig } from '../config.ts';
import { cachedFolder } from './cache.ts';
import { CommandError, runCommand, runGo } from './commands.ts';
import { withStillWorking } from './progress.ts';
import type { Report } from './progress.ts';
import { downloadWithSdk, sdkVersion } from './sdk-download.ts';

type CliConfig = Pick<EmbeddedConfig, 'temporalCliPath' | 'cacheDir'>;

/** The newest version whose go.mod has no replace directive, which `go install` refuses. */
const GO_CLI_VERSION = '1.5.1';

const GO_MODULE = `github.com/temporalio/cli/cmd/temporal@v${GO_CLI_VERSION}`;

/** Time limit in ms to download 300 modules and compile them on a slow machine. */
const GO_INSTALL_TIMEOUT_MS = 30 * 60_000;

export class ComponentMissingError extends Error {
  override readonly name = 'ComponentMissingError';
}

/** From TEMPORAL_CLI_PATH, PATH, the cache, the SDK's download or Go. Throws ComponentMissingError. */
export async function temporalCli(config: CliConfig, report: Report): Promise<string> {
  if (config.temporalCliPath !== undefined) {
    await requireExecutable(config.temporalCliPath, 'TEMPORAL_CLI_PATH');
    return config.temporalCliPath;
  }
  return (await onPath('temporal')) ?? inCache(config.cacheDir) ?? (await prepare(config, report));
}

export async function requireExecutable(path: string, variable: string): Promise<void> {
  await access(path, constants.X_OK).catch(() => {
    throw new ComponentMissingError(`${variable} is ${path}, which is not an executable file.`);
  });
}

export async function onPath(program: string): Promise<string | undefined> {
  try {
    const found = await runCommand('sh', ['-c', `command -v ${program}`], { timeoutMs: 5_000 });
    return found.trim().startsWith('/') ? found.trim() : undefined;
  } catch (error) {
    if (error instanceof CommandError) return undefined;
    throw error;
  }
}

const goEntry = `temporal-cli-${GO_CLI_VERSION}`;
const sdkEntry = (): string => `temporal-cli-sdk-${sdkVersion()}`;

function inCache(cacheDir: string): string | undefined {
  return [goEntry, sdkEntry()]
    .map((entry) => join(cacheDir, entry, 'temporal'))
    .find((path) => existsSync(path));
}

async function prepare({ cacheDir }: CliConfig, report: Report): Promise<string> {
  return firstOf(
    [fromSdk, fromGo].map((way) => () => way(cacheDir, report)),
    [
      'No Temporal server found. Do one of these:',
      '  - install the Temporal CLI so that `temporal` is on PATH, or set TEMPORAL_CLI_PATH;',
      `  - install Go 1.25 or newer, which can build it (${GO_MODULE});`,
      '  - set TEMPORAL_ADDRESS to a running Temporal server.',
    ],
  );
}

/** The result of the first way that works. Throws ComponentMissingError with `advice` and every failure. */
export async function firstOf(
  ways: readonly (() => Promise<string>)[],
  advice: readonly string[],
): Promise<string> {
  const failures: string[] = [];
  for (const way of ways) {
    try {
      return await way();
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      failures.push(`  - ${text.replaceAll('\n', '\n    ')}`);
    }
  }
  throw new ComponentMissingError([...advice, 'These attempts failed:', ...failures].join('\n'));
}

async function fromSdk(cacheDir: string, report: Report): Promise<string> {
  const folder = await cachedFolder(cacheDir, sdkEntry(), report, async (building) => {
    report('looking for a Temporal server to download');
    const failure = await withStillWorking(report, 'downloading the Temporal server', () =>
      downloadWithSdk('dev-server', join(building, 'temporal')),
    );
    if (failure !== undefined) throw new CommandError(`download: ${failure}`);
  });
  return join(folder, 'temporal');
}

async function fromGo(cacheDir: string, report: Report): Promise<string> {
  if ((await onPath('go')) === undefined) {
    throw new CommandError('build from Go modules: `go` is not on PATH');
  }
  const folder = await cachedFolder(cacheDir, goEntry, report, async (building) => {
    report('download failed; building the Temporal server once from Go modules:');
    report('  about 3 minutes on two cores, longer on a slow line');
    const args = ['install', '-ldflags=-s -w', GO_MODULE];
    await withStillWorking(report, 'building the Temporal server', () =>
      runGo(building, args, GO_INSTALL_TIMEOUT_MS),
    );
  });
  return join(folder, 'temporal');
}
