import { userInfo } from 'node:os';
import type { EmbeddedConfig } from '../runtime/config.ts';
import { CommandError, runCommand } from './commands.ts';
import { withStillWorking } from './progress.ts';
import type { Report } from './progress.ts';
import { ComponentMissingError, onPath, requireExecutable } from './temporal-cli.ts';

const PROGRAMS = ['chromium', 'chromium-browser', 'google-chrome'] as const;

/** About 100 MB of packages on a slow line, in ms. */
const LISTS_WITHIN_MS = 2 * 60_000;
const INSTALL_WITHIN_MS = 8 * 60_000;
const VERSION_WITHIN_MS = 20_000;

type ChromiumConfig = Pick<EmbeddedConfig, 'chromiumPath'> & {
  /** Whether packages may be installed on this machine. Default: when we are root. */
  readonly mayInstall?: boolean;
};

/**
 * Path of a Chromium (or Chrome), for tests in a real browser. Looked for in this order:
 * `CHROMIUM_PATH`; `chromium`, `chromium-browser`, `google-chrome` on PATH; installed with apt-get,
 * as root where there is one. Safe to call from several processes at once.
 *
 * @throws ComponentMissingError when every way failed; its message names the ways to get one.
 */
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
      'No browser. Any one of these gives it one:',
      `  - install Chromium or Chrome, so that one of ${PROGRAMS.join(', ')} is on PATH;`,
      '  - set CHROMIUM_PATH to one.',
      `What was tried: ${failure ?? 'apt-get, and the package it installed has no such program'}`,
    ].join('\n'),
  );
}

/** Some distributions have a program of that name that only says how to install it. */
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

/** Why it could not be installed, or undefined. */
async function install(config: ChromiumConfig, report: Report): Promise<string | undefined> {
  const { mayInstall = userInfo().uid === 0 } = config;
  if (!mayInstall) return 'nothing; only root can install packages';
  if ((await onPath('apt-get')) === undefined) return 'nothing; there is no apt-get here';
  report('no browser; installing Chromium with apt-get, once: a minute or two');
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
