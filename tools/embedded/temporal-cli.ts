import { join } from 'node:path';
import type { EmbeddedConfig } from '../config.ts';
import { cachedFolder } from './cache.ts';
import { CommandError, runGo } from './commands.ts';
import { findProgram, onPath } from './find-program.ts';
import { withStillWorking } from './progress.ts';
import type { Report } from './progress.ts';
import { downloadWithSdk, sdkProgram } from './sdk-download.ts';

type CliConfig = Pick<EmbeddedConfig, 'temporalCliPath' | 'cacheDir'>;

/** The newest version whose go.mod has no replace directive, which `go install` refuses. */
const GO_CLI_VERSION = '1.5.1';

const GO_MODULE = `github.com/temporalio/cli/cmd/temporal@v${GO_CLI_VERSION}`;

/** Time limit in ms to download 300 modules and compile them on a slow machine. */
const GO_INSTALL_TIMEOUT_MS = 30 * 60_000;

const goEntry = `temporal-cli-${GO_CLI_VERSION}`;

/** From TEMPORAL_CLI_PATH, PATH, the cache, the SDK's download or Go. Throws ComponentMissingError. */
export async function temporalCli(
  { temporalCliPath, cacheDir }: CliConfig,
  report: Report,
): Promise<string> {
  return findProgram({
    given: temporalCliPath,
    variable: 'TEMPORAL_CLI_PATH',
    program: 'temporal',
    cached: [join(cacheDir, goEntry, 'temporal'), sdkProgram('dev-server', cacheDir)],
    ways: [
      () => downloadWithSdk('dev-server', cacheDir, report),
      () => buildWithGo(cacheDir, report),
    ],
    advice: [
      'No Temporal server found. Do one of these:',
      '  - install the Temporal CLI so that `temporal` is on PATH, or set TEMPORAL_CLI_PATH;',
      `  - install Go 1.25 or newer, which can build it (${GO_MODULE});`,
      '  - set TEMPORAL_ADDRESS to a running Temporal server.',
    ],
  });
}

async function buildWithGo(cacheDir: string, report: Report): Promise<string> {
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
