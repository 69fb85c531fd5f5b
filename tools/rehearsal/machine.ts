import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { childEnvironment } from '../../runtime/environment.ts';
import { runCommand } from '../embedded/run-command.ts';
import { freePort } from '../embedded/ports.ts';
import { postgresCommand, postgresPrograms } from '../embedded/postgres-programs.ts';
import { postgresService } from '../embedded/postgres.ts';
import { openProcessTable } from '../embedded/process-table.ts';
import { supervise } from '../embedded/services.ts';
import type { Program, SupervisedService } from '../embedded/services.ts';
import { inContainer } from './composition.ts';
import type { Container, Image } from './composition.ts';

const READY_WITHIN_MS = 180_000;
const JOB_WITHIN_MS = 180_000;
const HEALTHCHECK_WITHIN_MS = 5_000;
const HEALTHCHECK_EVERY_MS = 500;
const POLL_MS = 50;
/** The data folder of the image. */
const POSTGRES_DATA = '/var/lib/postgresql/18/docker';

/** Copies what the Dockerfile copies, and runs its commands of Node. */
export async function buildImage(app: string): Promise<Image> {
  const lines = readFileSync('Dockerfile', 'utf8').split('\n');
  const after = (word: string): string[] =>
    lines.flatMap((line) => (line.startsWith(word) ? [line.slice(word.length)] : []));
  for (const path of after('COPY ').flatMap((line) => line.split(' ').slice(0, -1))) {
    cpSync(path, join(app, path), { recursive: true });
  }
  symlinkSync(resolve('node_modules'), join(app, 'node_modules'));
  for (const command of after('RUN node ')) {
    await runCommand('sh', ['-c', `node ${command}`], { timeoutMs: JOB_WITHIN_MS, cwd: app });
  }
  const variables = after('ENV ').map((line) => [line.split('=')[0], line.replace(/^\w+=/, '')]);
  return { app, environment: Object.fromEntries(variables) as Record<string, string> };
}

/** Runs containers as processes, each with its own variables only. `programs` has those of foreign images. */
export function createMachine(folder: string, programs: string) {
  const table = openProcessTable(join(folder, 'processes.json'));
  const running = new Map<string, SupervisedService>();

  /** Arguments of `env`, which replaces itself by the program, so the process keeps its pid. */
  const withVariables = (container: Container, command: readonly string[]): string[] => [
    '-i',
    `--chdir=${container.folder}`,
    `PATH=${programs}:${childEnvironment({})['PATH']}`,
    `HOME=${folder}`,
    ...Object.entries(container.environment).map(([name, value]) => `${name}=${value}`),
    ...command,
  ];
  const isHealthy = async (container: Container): Promise<boolean> => {
    const { healthcheck } = container;
    if (healthcheck.length === 0) return true;
    const timeoutMs = HEALTHCHECK_WITHIN_MS;
    return runCommand('env', withVariables(container, healthcheck), { timeoutMs }).then(
      () => true,
      () => sleep(HEALTHCHECK_EVERY_MS, false),
    );
  };
  const pidOf = (name: string): number | undefined =>
    table.running().find((record) => record.name === name)?.pid;

  return {
    isUp: ({ name }: Container): boolean => running.has(name),
    /** Resolves when the health check succeeds. From then on a process that ends is started again. */
    async start(container: Container): Promise<void> {
      const { name, service } = container;
      const isPostgres = service.image.startsWith('postgres:');
      const data = inContainer(container, POSTGRES_DATA);
      if (isPostgres && !existsSync(data)) await initialisePostgres(container, data);
      const waitMs = Number.parseInt(service.stop_grace_period ?? '10', 10) * 1_000;
      const supervised = supervise(
        {
          name,
          program: () =>
            isPostgres
              ? postgresOf(container, data)
              : { command: 'env', args: withVariables(container, container.command) },
          logFile: join(folder, `${name}.log`),
          isReady: () => isHealthy(container),
          readyWithinMs: READY_WITHIN_MS,
          stopSteps: [
            { signal: isPostgres ? 'SIGINT' : 'SIGTERM', waitMs },
            { signal: 'SIGKILL', waitMs: 2_000 },
          ],
        },
        { table, report: () => undefined },
      );
      running.set(name, supervised);
      await supervised.start();
    },
    /** Runs a job to its end and returns its output. */
    run: (container: Container): Promise<string> =>
      runCommand('env', withVariables(container, container.command), { timeoutMs: JOB_WITHIN_MS }),
    /** Ends the process by SIGKILL, and waits until its successor is healthy. */
    async kill(container: Container): Promise<void> {
      const pid = pidOf(container.name);
      if (pid === undefined) throw new Error(`${container.name} does not run`);
      process.kill(pid, 'SIGKILL');
      const giveUpAt = performance.now() + READY_WITHIN_MS;
      while ([undefined, pid].includes(pidOf(container.name)) || !(await isHealthy(container))) {
        if (performance.now() > giveUpAt) throw new Error(`${container.name} did not come back`);
        await sleep(POLL_MS);
      }
    },
    async stop(name: string): Promise<void> {
      await running.get(name)?.stop();
      running.delete(name);
    },
    /** Resident memory in MB. */
    memoryOf(name: string): number {
      const status = readFileSync(`/proc/${pidOf(name)}/status`, 'utf8');
      return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024);
    },
  };
}

/** Creates the folder and runs the mounted script once, as the image does. */
async function initialisePostgres(container: Container, dataFolder: string): Promise<void> {
  const { environment, mounts } = container;
  const port = await freePort();
  const password = environment['POSTGRES_PASSWORD'] ?? '';
  const settings = { dataFolder, logFile: `${dataFolder}.log`, port, password, isDurable: true };
  const quietly = { report: () => undefined };
  const server = supervise(postgresService(settings, quietly.report), quietly);
  await server.start();
  const [, script = ''] = mounts.find(([target]) => target.includes('initdb.d')) ?? [];
  const place = ['-h', '127.0.0.1', '-p', String(port), '-U', 'postgres', '-w'];
  await runCommand('psql', [...place, '-v', 'ON_ERROR_STOP=1', '-f', script], {
    timeoutMs: JOB_WITHIN_MS,
    environment: { ...environment, PGPASSWORD: password },
  });
  await server.stop();
}

function postgresOf({ address, command }: Container, dataFolder: string): Program {
  const sockets = [`listen_addresses=${address}`, 'unix_socket_directories='];
  const options = sockets.flatMap((option) => ['-c', option]);
  const args = [...command.slice(1), '-D', dataFolder, ...options];
  return postgresCommand(postgresPrograms(), 'postgres', args, dirname(dataFolder));
}

/** Links the programs of foreign images, with a `nc -z` that some machines lack. */
export function linkPrograms(folder: string, paths: Readonly<Record<string, string>>): void {
  mkdirSync(folder);
  for (const [name, path] of Object.entries(paths)) symlinkSync(path, join(folder, name));
  writeFileSync(join(folder, 'nc'), '#!/bin/bash\n: </dev/tcp/$2/$3\n', { mode: 0o755 });
}
