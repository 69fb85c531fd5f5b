import { existsSync, readFileSync } from 'node:fs';
import { chmod, chown, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import postgres from 'postgres';
import { runCommand } from './run-command.ts';
import { postgresCommand, postgresPrograms } from './postgres-programs.ts';
import type { PostgresPrograms } from './postgres-programs.ts';
import { commandLineOf, endProcess, identify } from './process-identity.ts';
import type { ProcessIdentity } from './process-identity.ts';
import type { Report } from './progress.ts';
import type { Service } from './services.ts';

export interface PostgresSettings {
  readonly dataFolder: string;
  readonly logFile: string;
  readonly port: number;
  readonly password: string;
  /** False only in tests. A power failure or a kill of Postgres may then lose data that was committed. */
  readonly isDurable: boolean;
}

const USER = 'postgres';
const INITDB_TIMEOUT_MS = 120_000;
const READY_WITHIN_MS = 60_000;

/** Fast shutdown, then immediate shutdown (Postgres recovers at the next start), then SIGKILL. */
const STOP_STEPS = [
  { signal: 'SIGINT', waitMs: 5_000 },
  { signal: 'SIGQUIT', waitMs: 2_000 },
  { signal: 'SIGKILL', waitMs: 2_000 },
] as const;

export function postgresUrl(
  settings: Pick<PostgresSettings, 'port' | 'password'>,
  database: string,
): string {
  const password = encodeURIComponent(settings.password);
  return `postgres://${USER}:${password}@127.0.0.1:${settings.port}/${database}`;
}

/** Before each launch, creates a missing data folder and clears what a killed `npm start` left. */
export function postgresService(settings: PostgresSettings, report: Report): Service {
  const programs = postgresPrograms();
  const { dataFolder, port, logFile } = settings;
  const options: Record<string, string> = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '200',
    wal_compression: 'on',
    // The benchmarks measure a delivery from the commit of its event.
    track_commit_timestamp: 'on',
    ...(settings.isDurable
      ? {}
      : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  };
  const args = [
    '-D',
    dataFolder,
    ...Object.entries(options).flatMap(([k, v]) => ['-c', `${k}=${v}`]),
  ];
  return {
    name: 'postgres',
    program: () => postgresCommand(programs, 'postgres', args, dirname(dataFolder)),
    logFile,
    isReady: () => answers(postgresUrl(settings, 'postgres')),
    readyWithinMs: READY_WITHIN_MS,
    beforeLaunch: async () => {
      if (!existsSync(join(dataFolder, 'PG_VERSION'))) {
        await createDataFolder(programs, settings, report);
      }
      await clearLeftovers(dataFolder, report);
    },
    stopSteps: STOP_STEPS,
  };
}

export async function ensureDatabase(url: string): Promise<void> {
  const target = new URL(url);
  const name = decodeURIComponent(target.pathname.slice(1));
  target.pathname = '/postgres';
  const sql = oneConnection(target.href, 5);
  try {
    const [row] = await sql`select 1 from pg_database where datname = ${name}`;
    if (row === undefined) await sql.unsafe(`create database "${name.replaceAll('"', '""')}"`);
  } finally {
    await sql.end({ timeout: 2 });
  }
}

const oneConnection = (url: string, timeoutSeconds: number) =>
  postgres(url, {
    max: 1,
    connect_timeout: timeoutSeconds,
    onnotice: () => undefined,
    // `true` queries array types at connect, which fails uncaught while Postgres starts or stops.
    fetch_types: false,
  });

/** Throws an error that names host and database, but never the password. */
export async function requireDatabase(url: string): Promise<void> {
  const { host, pathname } = new URL(url);
  await answers(url).catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`DATABASE_URL (${host}${pathname}) cannot be used: ${reason}`, { cause });
  });
}

async function answers(url: string): Promise<boolean> {
  const sql = oneConnection(url, 2);
  try {
    await sql`select 1`;
    return true;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

async function createDataFolder(
  programs: PostgresPrograms,
  settings: PostgresSettings,
  report: Report,
): Promise<void> {
  const { dataFolder, password } = settings;
  const unfinished = `${dataFolder}.unfinished`;
  const passwordFile = `${dataFolder}.password`;
  report('creating the database folder');
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(dirname(dataFolder), { recursive: true });
  await mkdir(unfinished, { mode: 0o700 });
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  if (programs.owner !== undefined) {
    const { uid, gid } = programs.owner;
    await chown(unfinished, uid, gid);
    await chown(passwordFile, uid, gid);
  }
  const args = [
    `--pgdata=${unfinished}`,
    `--username=${USER}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--no-instructions',
    ...(settings.isDurable ? [] : ['--no-sync']),
  ];
  try {
    const {
      command,
      args: allArgs,
      ...account
    } = postgresCommand(programs, 'initdb', args, dirname(dataFolder));
    await runCommand(command, allArgs, { timeoutMs: INITDB_TIMEOUT_MS, cwd: '/', ...account });
  } finally {
    await rm(passwordFile, { force: true });
  }
  await chmod(unfinished, 0o700);
  await rename(unfinished, dataFolder);
}

/** Removes the lock file of a killed Postgres: its pid may now belong to another process. */
async function clearLeftovers(dataFolder: string, report: Report): Promise<void> {
  const lockFile = join(dataFolder, 'postmaster.pid');
  if (!existsSync(lockFile)) return;
  const pid = Number.parseInt(readFileSync(lockFile, 'utf8'), 10);
  const holder = Number.isNaN(pid) ? undefined : serverOn(dataFolder, pid);
  if (holder === undefined) {
    report('removing the lock file of a Postgres that was killed');
    await rm(lockFile, { force: true });
    return;
  }
  report(`stopping Postgres (pid ${pid}), left running on this folder by an earlier start`);
  if (!(await endProcess(holder, STOP_STEPS))) {
    throw new Error(
      `Postgres (pid ${pid}) holds ${dataFolder} and cannot be stopped. Stop it first.`,
    );
  }
  // A Postgres that SIGKILL ended leaves its lock file.
  await rm(lockFile, { force: true });
}

function serverOn(dataFolder: string, pid: number): ProcessIdentity | undefined {
  const identity = identify(pid);
  const commandLine = commandLineOf(pid);
  const isOurs =
    commandLine?.includes('postgres') === true && commandLine.includes(`-D ${dataFolder} `);
  return isOurs ? identity : undefined;
}

/** Returns the URL without its password, to print. The whole URL is in demo.json, which only its owner can read. */
export function withoutPassword(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  url.password = '';
  return url.href;
}
