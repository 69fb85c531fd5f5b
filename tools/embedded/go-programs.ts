import { copyFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { cachedFolder } from './cache.ts';
import { CommandError, runCommand } from './run-command.ts';
import { ComponentMissingError, onPath } from './find-program.ts';
import { withStillWorking } from './progress.ts';
import type { Report } from './progress.ts';

export interface GoPrograms {
  /** Name of the folder in the cache, with the version. */
  readonly entry: string;
  readonly module: string;
  readonly version: string;
  /** Paths of the programs in the module. Each program has the last part of its path as name. */
  readonly programs: readonly string[];
  readonly flags?: readonly string[];
  /** Path of a file of the module that is copied to the programs. */
  readonly file?: string;
  /** Duration of the build, for the report. */
  readonly duration: string;
}

/** Limit in ms for one program, with the download of its modules, on a slow machine. */
const BUILD_WITHIN_MS = 30 * 60_000;

/** Builds programs of a Go module once into the cache. Returns their folder. Throws ComponentMissingError. */
export function goPrograms(cacheDir: string, report: Report, wanted: GoPrograms): Promise<string> {
  const { entry, module, version, programs, flags = [], file, duration } = wanted;
  const build = async (folder: string): Promise<void> => {
    if ((await onPath('go')) === undefined) throw new CommandError('`go` is not on PATH');
    // Outside the checkout, so that no go.mod or go.work of another project applies.
    const environment = { GOBIN: folder, CGO_ENABLED: '0' };
    const go = (...args: string[]): Promise<string> =>
      runCommand('go', args, { timeoutMs: BUILD_WITHIN_MS, cwd: tmpdir(), environment });
    for (const program of programs) {
      const path = join(module, program);
      await go('install', '-ldflags=-s -w', ...flags, `${path}@${version}`);
    }
    if (file === undefined) return;
    const { Dir } = JSON.parse(await go('mod', 'download', '-json', `${module}@${version}`)) as {
      Dir: string;
    };
    await copyFile(join(Dir, file), join(folder, basename(file)));
  };
  return cachedFolder(cacheDir, entry, async (folder) => {
    report(`building ${entry} from its Go module, once: ${duration} on two cores`);
    await withStillWorking(report, `building ${entry}`, () => build(folder)).catch(
      (error: unknown) => {
        if (!(error instanceof CommandError)) throw error;
        const reason = error.message.replaceAll('\n', '\n    ');
        throw new ComponentMissingError(
          `No ${entry}. Install Go 1.26 with access to a Go module proxy, which builds it once.\nThis attempt failed:\n  - ${reason}`,
        );
      },
    );
  });
}
