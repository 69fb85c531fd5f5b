import { userInfo } from 'node:os';
import type { EmbeddedConfig } from '../config.ts';
import { CommandError, runCommand } from './run-command.ts';
import { withStillWorking } from './progress.ts';
import type { Report } from './progress.ts';
import { findProgram, onPath } from './find-program.ts';

const PROGRAMS = ['chromium', 'chromium-browser', 'google-chrome'] as const;

/** Time limits in ms. The packages are about 100 MB, and the network may be slow. */
const LISTS_WITHIN_MS = 2 * 60_000;
const INSTALL_WITHIN_MS = 8 * 60_000;
const VERSION_WITHIN_MS = 20_000;

/** From CHROMIUM_PATH, PATH, or as root apt-get. Throws ComponentMissingError, which lists what to do. */
export async function chromium(
  { chromiumPath }: Pick<EmbeddedConfig, 'chromiumPath'>,
  report: Report,
): Promise<string> {
  return findProgram({
    given: chromiumPath,
    variable: 'CHROMIUM_PATH',
    cached: [],
    ways: [chromiumOnPath, () => install(report).then(chromiumOnPath)],
    advice: [
      'No browser found. Do one of these:',
      `  - install Chromium or Chrome so that ${PROGRAMS.join(' or ')} is on PATH;`,
      '  - set CHROMIUM_PATH to its path.',
    ],
  });
}

/** Runs each program found: on some distributions it only prints how to install the browser. */
async function chromiumOnPath(): Promise<string> {
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
  throw new CommandError('no browser that starts is on PATH');
}

async function install(report: Report): Promise<void> {
  if (userInfo().uid !== 0)
    throw new CommandError('no installation: only root can install packages');
  if ((await onPath('apt-get')) === undefined) {
    throw new CommandError('no installation: apt-get is not on PATH');
  }
  report('no browser found; installing Chromium once with apt-get (1 to 2 minutes)');
  const aptGet = (args: readonly string[], timeoutMs: number) =>
    runCommand('apt-get', ['-q', '-y', '-o', 'DPkg::Lock::Timeout=300', ...args], {
      timeoutMs,
      environment: { DEBIAN_FRONTEND: 'noninteractive' },
    });
  await withStillWorking(report, 'installing Chromium', async () => {
    await aptGet(['update'], LISTS_WITHIN_MS);
    const packages = ['chromium', 'fonts-liberation'];
    await aptGet(['install', '--no-install-recommends', ...packages], INSTALL_WITHIN_MS);
  });
}
