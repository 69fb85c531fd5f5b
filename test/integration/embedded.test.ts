import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import postgres from 'postgres';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { cachedFolder } from '../../embedded/cache.ts';
import { clearEarlierStart } from '../../embedded/leftovers.ts';
import { freePort, requireFreePorts } from '../../embedded/ports.ts';
import { ensureDatabase, postgresService, postgresUrl } from '../../embedded/postgres.ts';
import { identify, isRunning } from '../../embedded/process-identity.ts';
import { openProcessTable } from '../../embedded/process-table.ts';
import type { ProcessRecord } from '../../embedded/process-table.ts';
import { loadOrMakeSecrets } from '../../embedded/secrets.ts';
import { supervise } from '../../embedded/services.ts';
import type { Service, SupervisedService } from '../../embedded/services.ts';

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

/** A program of ours that says it is ready, unless its folder holds a file named `broken`. */
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
  it('is started again when it dies, with a line that says so', async () => {
    await run(program('worker')).start();
    const first = pidOf('worker');
    process.kill(first, 'SIGKILL');
    await vi.waitFor(() => expect(lines).toHaveLength(2), 20_000);
    expect(lines).toEqual([
      'worker died (SIGKILL); starting it again in 0.25 s',
      `worker is back (pid ${pidOf('worker')})`,
    ]);
    expect(pidOf('worker')).not.toBe(first);
  });

  it('is started less and less often while it keeps dying', async () => {
    await run(program('worker')).start();
    writeFileSync(join(folder, 'broken'), '');
    process.kill(pidOf('worker'), 'SIGKILL');
    await vi.waitFor(
      () => expect(lines.filter((line) => line.includes('died'))).toHaveLength(3),
      20_000,
    );
    expect(lines.filter((line) => line.includes('died'))).toEqual([
      'worker died (SIGKILL); starting it again in 0.25 s',
      'worker died (code 3); starting it again in 0.5 s',
      'worker died (code 3); starting it again in 1 s',
    ]);
  });

  it('that does not come up is an error with the end of its log', async () => {
    writeFileSync(join(folder, 'broken'), '');
    await expect(run(program('api')).start()).rejects.toThrow(
      /^api ended with code 3.*it is broken/s,
    );
  });

  describe('that is not ours', () => {
    const launches = () => readFileSync(join(folder, 'launches'), 'utf8').length;

    /** Ends as a program in Go does whose port was taken, the first `deaths` times. */
    const foreign = (deaths: number): Service => ({
      ...program('temporal'),
      program: () => ({
        command: '/bin/sh',
        args: [
          '-c',
          `cd ${folder}; printf . >> launches
           test $(wc -c < launches) -gt ${deaths} && exec sleep 60
           echo 'panic: failed assigning ephemeral port'; seq 20; exit 2`,
        ],
      }),
      isReady: async () => existsSync(join(folder, 'launches')) && launches() > deaths,
      isOurProgram: false,
    });

    it('is launched again when it dies before it serves', async () => {
      await run(foreign(2)).start();
      const said =
        /^temporal ended with code 2\..*\n  panic: failed assigning ephemeral port\n  …\n  9\n.*  20\nstarting temporal once more$/s;
      expect(lines).toEqual([expect.stringMatching(said), expect.stringMatching(said)]);
      expect(launches()).toBe(3);
    });

    it('is given up after three launches', async () => {
      await expect(run(foreign(9)).start()).rejects.toThrow(/^temporal ended with code 2\./);
      expect(launches()).toBe(3);
    });
  });

  it('is gone and stays gone after stop, also when it takes no notice of SIGTERM', async () => {
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

  it('ends when the process that started it is killed', async () => {
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
    await vi.waitFor(() => expect(isRunning(child)).toBe(false), 20_000);
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

  /** Runs one statement on a database of its own. */
  async function query(url: string, statement: string) {
    const sql = postgres(url, { max: 1, onnotice: () => undefined });
    try {
      return await sql.unsafe(statement);
    } finally {
      await sql.end();
    }
  }

  it('keeps its data over a stop and a start', async () => {
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

  it('that a killed start left running is stopped by the next one, which has its data', async () => {
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
    await vi.waitFor(() => query(postgresUrl(server, 'postgres'), 'select 1'), 20_000);
    await ensureDatabase(url);
    await query(url, 'create table kept (n int); insert into kept values (8)');
    await run(postgresService(server, report)).start();
    expect(lines).toEqual([
      `stopping Postgres (pid ${orphan.pid}), left running on this folder by an earlier start`,
    ]);
    expect([...(await query(url, 'select n from kept'))]).toEqual([{ n: 8 }]);
  });

  it('starts in spite of the lock file of a killed one whose pid a stranger has now', async () => {
    const server = await settings();
    await startedOnce(server);
    const stranger = spawn('sleep', ['600'], { stdio: 'ignore' });
    toKill.push(stranger.pid!);
    const lockFile = join(server.dataFolder, 'postmaster.pid');
    writeFileSync(
      lockFile,
      `${stranger.pid}\n${server.dataFolder}\n1\n${server.port}\n\n127.0.0.1\n`,
    );
    await run(postgresService(server, report)).start();
    expect(lines).toEqual(['removing the lock file of a Postgres that was killed']);
    expect(identify(stranger.pid!)).toBeDefined();
  });

  /** Makes the data folder and forgets what was reported; returns how the server is run. */
  async function startedOnce(server: Awaited<ReturnType<typeof settings>>) {
    const service = postgresService(server, report);
    const supervised = run(service);
    await supervised.start();
    await supervised.stop();
    lines = [];
    return service.program();
  }
});

describe('what an earlier start left behind', () => {
  it('is stopped, but never a stranger that has got its pid', async () => {
    const table = openProcessTable(join(folder, 'processes.json'));
    const left = spawn('sleep', ['600'], { stdio: 'ignore' });
    const stranger = spawn('sleep', ['600'], { stdio: 'ignore' });
    toKill.push(left.pid!, stranger.pid!);
    table.add('temporal', left.pid!);
    table.add('api', stranger.pid!);
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
    expect(identify(stranger.pid!)).toBeDefined();
  });
});

describe('the cache', () => {
  const build = `
    import { cachedFolder } from ${JSON.stringify(resolve('embedded/cache.ts'))};
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

  it('is filled once when two processes ask at the same time', async () => {
    const both = [start('build'), start('build')];
    const codes = await Promise.all(both.map(async (child) => (await once(child, 'close'))[0]));
    expect(codes).toEqual([0, 0]);
    expect(readFileSync(join(folder, 'builds'), 'utf8')).toBe('x');
    expect(existsSync(join(folder, 'cache/tool-1/program'))).toBe(true);
  });

  it('never shows what a killed process half made, and lets the next one make it', async () => {
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

describe('ports', () => {
  it('that are taken are named with what they are for and the variable that moves them', async () => {
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

describe('secrets', () => {
  it('are made once, kept, and readable by their owner only', async () => {
    const file = join(folder, 'data', 'secrets.json');
    const made = loadOrMakeSecrets(file);
    expect(loadOrMakeSecrets(file)).toEqual(made);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(Buffer.from(made.ENCRYPTION_KEY, 'base64')).toHaveLength(32);
    expect(new Set(Object.values(made)).size).toBe(5);
  });
});
