import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import postgres from 'postgres';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cachedFolder } from '../../tools/embedded/cache.ts';
import { clearEarlierStart } from '../../tools/embedded/leftovers.ts';
import { freePort, requireFreePorts } from '../../tools/embedded/ports.ts';
import { ensureDatabase, postgresService, postgresUrl } from '../../tools/embedded/postgres.ts';
import { identify, isRunning } from '../../tools/embedded/process-identity.ts';
import { openProcessTable } from '../../tools/embedded/process-table.ts';
import type { ProcessRecord } from '../../tools/embedded/process-table.ts';
import { loadOrMakeSecrets } from '../../tools/embedded/secrets.ts';
import { supervise } from '../../tools/embedded/services.ts';
import type { Service, SupervisedService } from '../../tools/embedded/services.ts';
import { eventually } from '../support/eventually.ts';

let folder: string;
let lines: string[];
const report = (line: string): void => void lines.push(line);
const toStop: SupervisedService[] = [];
const toKill: number[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'perennial-embedded-'));
  lines = [];
});
afterEach(async () => {
  await Promise.all(toStop.splice(0).map((service) => service.stop()));
  for (const pid of toKill.splice(0)) if (identify(pid) !== undefined) process.kill(pid, 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

function run(service: Service): SupervisedService {
  const supervised = supervise(service, {
    table: openProcessTable(join(folder, 'processes.json')),
    report,
  });
  toStop.push(supervised);
  return supervised;
}

const pidOf = (name: string): number =>
  openProcessTable(join(folder, 'processes.json'))
    .running()
    .find((record) => record.name === name)!.pid;

/** A program that reports readiness, or exits with code 3 if its folder has a file `broken`. */
function program(name: string, body = ''): Service {
  const file = join(folder, `${name}.mjs`);
  writeFileSync(
    file,
    `import { existsSync } from 'node:fs';
     if (existsSync(${JSON.stringify(join(folder, 'broken'))})) { console.log('it is broken'); process.exit(3); }
     process.send({ ready: true });
     process.stdin.on('end', () => process.exit(0)).resume();
     ${body}`,
  );
  return {
    name,
    program: () => ({ command: process.execPath, args: [file] }),
    logFile: join(folder, `${name}.log`),
    isReady: async (saysReady) => saysReady,
    readyWithinMs: 20_000,
    stopSteps: [
      { signal: 'SIGTERM', waitMs: 2_000 },
      { signal: 'SIGKILL', waitMs: 2_000 },
    ],
    isOurProgram: true,
  };
}

describe('a supervised program', () => {
  it('is started again, with a report, when it crashes', async () => {
    await run(program('worker')).start();
    const first = pidOf('worker');
    process.kill(first, 'SIGKILL');
    await eventually(() => expect(lines).toHaveLength(2));
    expect(lines).toEqual([
      'worker died (SIGKILL); starting it again in 0.25 s',
      `worker is back (pid ${pidOf('worker')})`,
    ]);
    expect(pidOf('worker')).not.toBe(first);
  });

  it('is started after doubling delays while it keeps crashing', async () => {
    await run(program('worker')).start();
    writeFileSync(join(folder, 'broken'), '');
    process.kill(pidOf('worker'), 'SIGKILL');
    const deaths = () => lines.filter((line) => line.includes('died'));
    await eventually(() => expect(deaths().length).toBeGreaterThanOrEqual(3));
    expect(deaths().slice(0, 3)).toEqual([
      'worker died (SIGKILL); starting it again in 0.25 s',
      'worker died (code 3); starting it again in 0.5 s',
      'worker died (code 3); starting it again in 1 s',
    ]);
  });

  it('fails to start, with the end of its log as the reason, when it does not become ready', async () => {
    writeFileSync(join(folder, 'broken'), '');
    await expect(run(program('api')).start()).rejects.toThrow(
      /^api ended with code 3.*it is broken/s,
    );
  });

  describe('from a third party', () => {
    const launches = () => readFileSync(join(folder, 'launches'), 'utf8').length;

    /** A service whose first `crashes` launches exit like a Go program that finds no free port. */
    const foreign = (crashes: number): Service => ({
      ...program('temporal'),
      program: () => ({
        command: '/bin/sh',
        args: [
          '-c',
          `cd ${folder}; printf . >> launches
           test $(wc -c < launches) -gt ${crashes} && exec sleep 60
           echo 'panic: failed assigning ephemeral port'; seq 20; exit 2`,
        ],
      }),
      isReady: async () => existsSync(join(folder, 'launches')) && launches() > crashes,
      isOurProgram: false,
    });

    it('is launched again when it exits before it is ready', async () => {
      await run(foreign(2)).start();
      const reported =
        /^temporal ended with code 2\..*\n  panic: failed assigning ephemeral port\n  …\n  9\n.*  20\nstarting temporal once more$/s;
      expect(lines).toEqual([expect.stringMatching(reported), expect.stringMatching(reported)]);
      expect(launches()).toBe(3);
    });

    it('is abandoned after three failed launches', async () => {
      await expect(run(foreign(9)).start()).rejects.toThrow(/^temporal ended with code 2\./);
      expect(launches()).toBe(3);
    });
  });

  it('is stopped by stop(), also when it ignores SIGTERM', async () => {
    const service = run({
      ...program(
        'worker',
        "process.on('SIGTERM', () => {}); process.stdin.removeAllListeners('end');",
      ),
      stopSteps: [
        { signal: 'SIGTERM', waitMs: 100 },
        { signal: 'SIGKILL', waitMs: 2_000 },
      ],
    });
    await service.start();
    const identity = identify(pidOf('worker'))!;
    await service.stop();
    expect(isRunning(identity)).toBe(false);
    expect(openProcessTable(join(folder, 'processes.json')).running()).toEqual([]);
    expect(lines).toEqual([]);
  });

  it('that exits at the end of its stdin ends when its parent process, here a script, is killed', async () => {
    const file = program('worker');
    const starter = spawn(
      process.execPath,
      [
        '--import',
        'tsx',
        '--input-type=module',
        '--eval',
        `
      import { spawn } from 'node:child_process';
      const { args } = ${JSON.stringify(file.program())};
      const child = spawn(process.execPath, args, { stdio: ['pipe', 'ignore', 'ignore', 'ipc'], detached: true });
      child.once('message', () => console.log(child.pid));
    `,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const [output] = (await once(starter.stdout, 'data')) as [Buffer];
    const child = identify(Number.parseInt(output.toString(), 10))!;
    starter.kill('SIGKILL');
    await eventually(() => expect(isRunning(child)).toBe(false));
  });
});

describe('the embedded Postgres', () => {
  const settings = async () => ({
    dataFolder: join(folder, 'postgres'),
    logFile: join(folder, 'postgres.log'),
    port: await freePort(),
    password: 'p@ss/word',
    isDurable: false,
  });

  /** Runs one statement on its own connection. */
  async function query(url: string, statement: string) {
    const sql = postgres(url, { max: 1, onnotice: () => undefined });
    try {
      return await sql.unsafe(statement);
    } finally {
      await sql.end();
    }
  }

  it('keeps its data when it is stopped and started again', async () => {
    const server = await settings();
    const url = postgresUrl(server, 'perennial');
    const first = run(postgresService(server, report));
    await first.start();
    await ensureDatabase(url);
    await ensureDatabase(url);
    await query(url, 'create table kept (n int); insert into kept values (7)');
    await first.stop();
    await run(postgresService(server, report)).start();
    expect([...(await query(url, 'select n from kept'))]).toEqual([{ n: 7 }]);
    expect(lines).toEqual(['creating the database folder']);
  });

  it('is stopped and started again with its data when a killed npm start left it running', async () => {
    const server = await settings();
    const url = postgresUrl(server, 'perennial');
    const { command, args, ...account } = await startedOnce(server);
    const orphan = spawn(command, [...args], {
      ...account,
      cwd: '/',
      stdio: 'ignore',
      detached: true,
    });
    toKill.push(orphan.pid!);
    await eventually(() => query(postgresUrl(server, 'postgres'), 'select 1'));
    await ensureDatabase(url);
    await query(url, 'create table kept (n int); insert into kept values (8)');
    await run(postgresService(server, report)).start();
    expect(lines).toEqual([
      `stopping Postgres (pid ${orphan.pid}), left running on this folder by an earlier start`,
    ]);
    expect([...(await query(url, 'select n from kept'))]).toEqual([{ n: 8 }]);
  });

  it('starts when the pid in a killed server’s lock file belongs to another program', async () => {
    const server = await settings();
    await startedOnce(server);
    const otherProgram = spawn('sleep', ['600'], { stdio: 'ignore' });
    toKill.push(otherProgram.pid!);
    const lockFile = join(server.dataFolder, 'postmaster.pid');
    writeFileSync(
      lockFile,
      `${otherProgram.pid}\n${server.dataFolder}\n1\n${server.port}\n\n127.0.0.1\n`,
    );
    await run(postgresService(server, report)).start();
    expect(lines).toEqual(['removing the lock file of a Postgres that was killed']);
    expect(identify(otherProgram.pid!)).toBeDefined();
  });

  /** Starts and stops the server once, so that its data folder exists. Returns the server's command. */
  async function startedOnce(server: Awaited<ReturnType<typeof settings>>) {
    const service = postgresService(server, report);
    const supervised = run(service);
    await supervised.start();
    await supervised.stop();
    lines = [];
    return service.program();
  }
});

describe('a process of an earlier npm start', () => {
  it('is stopped unless another program has its pid now', async () => {
    const table = openProcessTable(join(folder, 'processes.json'));
    const left = spawn('sleep', ['600'], { stdio: 'ignore' });
    const otherProgram = spawn('sleep', ['600'], { stdio: 'ignore' });
    toKill.push(left.pid!, otherProgram.pid!);
    table.add('temporal', left.pid!);
    table.add('api', otherProgram.pid!);
    const file = join(folder, 'processes.json');
    const content = JSON.parse(readFileSync(file, 'utf8')) as { processes: ProcessRecord[] };
    const processes = content.processes.map((record) =>
      record.name === 'api' ? { ...record, startedAs: 'another-boot:1' } : record,
    );
    writeFileSync(file, JSON.stringify({ processes }));

    await clearEarlierStart(table, report);

    expect(lines).toEqual([
      `stopping temporal (pid ${left.pid}), left behind by an earlier start that was killed`,
    ]);
    expect(identify(left.pid!)).toBeUndefined();
    expect(identify(otherProgram.pid!)).toBeDefined();
  });
});

describe('the cache folder', () => {
  const build = `
    import { cachedFolder } from ${JSON.stringify(resolve('tools/embedded/cache.ts'))};
    import { writeFileSync, appendFileSync } from 'node:fs';
    const [root, mode] = process.argv.slice(2);
    const path = await cachedFolder(root, 'tool-1', (line) => console.error(line), async (target) => {
      appendFileSync(root + '/../builds', 'x');
      writeFileSync(target + '/half', '');
      console.log('building');
      if (mode === 'hang') await new Promise((r) => setTimeout(r, 600_000));
      await new Promise((r) => setTimeout(r, 300));
      writeFileSync(target + '/program', '');
    });
    console.log(path);
  `;
  const start = (mode: string) => {
    const file = join(folder, 'build.mts');
    writeFileSync(file, build);
    const child = spawn(process.execPath, ['--import', 'tsx', file, join(folder, 'cache'), mode], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    toKill.push(child.pid!);
    return child;
  };

  it('is filled once when two processes need the same entry at the same time', async () => {
    const both = [start('build'), start('build')];
    const codes = await Promise.all(both.map(async (child) => (await once(child, 'close'))[0]));
    expect(codes).toEqual([0, 0]);
    expect(readFileSync(join(folder, 'builds'), 'utf8')).toBe('x');
    expect(existsSync(join(folder, 'cache/tool-1/program'))).toBe(true);
  });

  it('has no partial entry when the process that builds the entry is killed, so the next process builds it', async () => {
    const killed = start('hang');
    await once(killed.stdout, 'data');
    killed.kill('SIGKILL');
    await once(killed, 'close');
    const path = await cachedFolder(join(folder, 'cache'), 'tool-1', report, async (target) => {
      writeFileSync(join(target, 'program'), 'whole');
    });
    expect(readFileSync(join(path, 'program'), 'utf8')).toBe('whole');
    expect(existsSync(join(path, 'half'))).toBe(false);
  });

  it('has no entry after a failed build', async () => {
    const failing = cachedFolder(join(folder, 'cache'), 'tool-1', report, async () => {
      throw new Error('no network');
    });
    await expect(failing).rejects.toThrow('no network');
    expect(existsSync(join(folder, 'cache/tool-1'))).toBe(false);
  });
});

describe('the check of ports', () => {
  it('names the purpose and the variable of a port when it is in use', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const wanted = [
      { port, purpose: 'API', variable: 'API_PORT' },
      { port: await freePort(), purpose: 'Postgres', variable: 'POSTGRES_PORT' },
    ];
    await expect(requireFreePorts('127.0.0.1', wanted)).rejects.toThrow(
      'Cannot start: other processes use the ports.\n' +
        `  port ${port} (API) is taken: set API_PORT to a free port, or stop the other process`,
    );
    server.close();
    await once(server, 'close');
    await requireFreePorts('127.0.0.1', wanted);
  });
});

describe('the secrets file', () => {
  it('is made once, kept, and readable by its owner only', async () => {
    const file = join(folder, 'data', 'secrets.json');
    const made = loadOrMakeSecrets(file);
    expect(loadOrMakeSecrets(file)).toEqual(made);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(Buffer.from(made.ENCRYPTION_KEY, 'base64')).toHaveLength(32);
    expect(new Set(Object.values(made)).size).toBe(5);
  });
});
