import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { clearEarlierStart } from '../../tools/embedded/leftovers.ts';
import { freePort } from '../../tools/embedded/ports.ts';
import { postgresService, requireDatabase } from '../../tools/embedded/postgres.ts';
import { identify } from '../../tools/embedded/process-identity.ts';
import { openProcessTable } from '../../tools/embedded/process-table.ts';
import type { ProcessRecord } from '../../tools/embedded/process-table.ts';
import { loadOrMakeSecrets } from '../../tools/embedded/secrets.ts';
import { supervise } from '../../tools/embedded/services.ts';
import type { Service, SupervisedService } from '../../tools/embedded/services.ts';

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

it('a database that stops while a command connects is one error, and nothing is left uncaught', async () => {
  // Accepts the login, then answers the first query as a Postgres that is being stopped.
  const server = createServer((socket) => {
    socket.once('data', () => {
      socket.write(Buffer.from('R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I'));
      const fields = Buffer.from('SFATAL\0C57P01\0Mterminating connection\0\0');
      socket.once('data', () =>
        socket.end(Buffer.concat([Buffer.from([0x45, 0, 0, 0, fields.length + 4]), fields])),
      );
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  // The test run fails by any error that is left uncaught.
  await expect(requireDatabase(`postgres://own:secret@127.0.0.1:${port}/own`)).rejects.toThrow(
    `DATABASE_URL (127.0.0.1:${port}/own) cannot be used: `,
  );
  server.close();
});

describe('the embedded Postgres', () => {
  const settings = async () => ({
    dataFolder: join(folder, 'postgres'),
    logFile: join(folder, 'postgres.log'),
    port: await freePort(),
    password: 'p@ss/word',
    isDurable: false,
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
