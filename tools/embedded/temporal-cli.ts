import { join } from 'node:path';
import type { EmbeddedConfig } from '../config.ts';
import { findProgram } from './find-program.ts';
import { goPrograms } from './go-programs.ts';
import type { Report } from './progress.ts';
import { downloadWithSdk, sdkProgram } from './sdk-download.ts';

type CliConfig = Pick<EmbeddedConfig, 'temporalCliPath' | 'cacheDir'>;

/** The newest version whose go.mod has no replace directive, which `go install` refuses. */
const GO_CLI_VERSION = '1.5.1';

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
      '  - install Go 1.26, which can build it;',
      '  - set TEMPORAL_ADDRESS to a running Temporal server.',
    ],
  });
}

async function buildWithGo(cacheDir: string, report: Report): Promise<string> {
  const folder = await goPrograms(cacheDir, report, {
    entry: goEntry,
    module: 'github.com/temporalio/cli',
    version: `v${GO_CLI_VERSION}`,
    programs: ['cmd/temporal'],
    duration: 'about 3 minutes',
  });
  return join(folder, 'temporal');
}
