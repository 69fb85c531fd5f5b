import { userInfo } from 'node:os';
import type { EmbeddedConfig } from '../config.ts';
import { CommandError, runCommand } from './commands.ts';
import { withStillWorking } from './progress.ts';
import type { Report } from './progress.ts';
import { ComponentMissingError, onPath, requireExecutable } from './find-program.ts';

const PROGRAMS = ['chromium', 'chromium-browser', 'google-chrome'] as const;

/** Time limits in ms. The packages are about 100 MB, and the network may be slow. */
const LISTS_WITHIN_MS = 2 * 60_000;
const INSTALL_WITHIN_MS = 8 * 60_000;
const VERSION_WITHIN_MS = 20_000;

type ChromiumConfig = Pick<EmbeddedConfig, 'chromiumPath'> & {
  readonly mayInstall?: boolean;
};

/** From CHROMIUM_PATH, PATH, or as root apt-get. Throws ComponentMissingError, which lists what to do. */
export async function chromium(config: ChromiumConfig, report: Report): Promise<string> {
  if (config.chromiumPath !== undefined) {
    await requireExecutable(config.chromiumPath, 'CHROMIUM_PATH');
    return config.chromiumPath;
  }
  const found = await chromiumOnPath();
  if (found !== undefined) return found;
  const failure = await install(config, report);
  const installed = failure === undefined ? await chromiumOnPath() : undefined;
  if (installed !== undefined) return installed;
  throw new ComponentMissingError(
    [
      'No browser found. Do one of these:',
      `  - install Chromium or Chrome so that ${PROGRAMS.join(' or ')} is on PATH;`,
      '  - set CHROMIUM_PATH to its path.',
      `Failed attempt: ${failure ?? 'apt-get installed a package without such a program'}`,
    ].join('\n'),
  );
}

/** Runs each program found: on some distributions it only prints how to install the browser. */
async function chromiumOnPath(): Promise<string | undefined> {
  for (const program of PROGRAMS) {
    const path = await onPath(program);
    if (path === undefined) continue;
    try {
      await runCommand(path, ['--version'], { timeoutMs: VERSION_WITHIN_MS });
      return path;
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
    }
  }
  return undefined;
}

async function install(config: ChromiumConfig, report: Report): Promise<string | undefined> {
  const { mayInstall = userInfo().uid === 0 } = config;
  if (!mayInstall) return 'no installation: only root can install packages';
  if ((await onPath('apt-get')) === undefined) return 'no installation: apt-get is not on PATH';
  report('no browser found; installing Chromium once with apt-get (1 to 2 minutes)');
  const aptGet = (args: readonly string[], timeoutMs: number) =>
    runCommand('apt-get', ['-q', '-y', '-o', 'DPkg::Lock::Timeout=300', ...args], {
      timeoutMs,
      environment: { DEBIAN_FRONTEND: 'noninteractive' },
    });
  try {
    await withStillWorking(report, 'installing Chromium', async () => {
      await aptGet(['update'], LISTS_WITHIN_MS);
      const packages = ['chromium', 'fonts-liberation'];
      await aptGet(['install', '--no-install-recommends', ...packages], INSTALL_WITHIN_MS);
    });
    return undefined;
  } catch (error) {
    if (error instanceof CommandError) return error.message;
    throw error;
  }
}
