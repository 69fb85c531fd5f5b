import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { freePort, requireFreePorts } from '../../tools/embedded/ports.ts';
import { identify } from '../../tools/embedded/process-identity.ts';
import { openProcessTable } from '../../tools/embedded/process-table.ts';

const READY_WITHIN_MS = 120_000;

let dataDir: string;
let environment: Record<string, string>;
let current: { child: ChildProcess; output: () => string } | undefined;

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'perennial-start-'));
  const servers = ['API', 'GATEWAY', 'POSTGRES', 'TEMPORAL', 'TEMPORAL_UI'];
  const doubles = ['STRIPE_DOUBLE', 'FAULT_PROXY', 'STRIPE_MOCK'];
  const numbers = await Promise.all(
    [...servers, ...doubles].map(async (name) => [`${name}_PORT`, String(await freePort())]),
  );
  environment = { DATA_DIR: dataDir, ...Object.fromEntries(numbers) };
});

afterAll(async () => {
  if (current !== undefined) await interrupt(current.child);
  for (const { pid } of running()) process.kill(pid, 'SIGKILL');
  rmSync(dataDir, { recursive: true, force: true });
});

const running = () => openProcessTable(join(dataDir, 'processes.json')).running();
const pidOf = (name: string): number => running().find((record) => record.name === name)!.pid;

/**
 * Starts the program of `npm start` without npm, and waits until the output says that the program is ready.
 */
async function start(...options: string[]) {
  const child = spawn(process.execPath, ['tools/scripts/run.mjs', 'start', ...options], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part: string) => (text += part));
  }
  current = { child, output: () => text };
  await vi.waitFor(
    () => {
      if (child.exitCode !== null) throw new Error(text);
      expect(text).toContain('Perennial is running');
    },
    { timeout: READY_WITHIN_MS, interval: 100 },
  );
  return current;
}

async function interrupt(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const closed = once(child, 'close');
  child.kill('SIGINT');
  await closed;
  return child.exitCode;
}

function demo(): Record<string, string> {
  return JSON.parse(readFileSync(join(dataDir, 'demo.json'), 'utf8')) as Record<string, string>;
}

/** Calls the API with the demo merchant's credentials. */
async function call(path: string, body?: object) {
  const { apiUrl, keyId, secret } = demo();
  const response = await fetch(`${apiUrl}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${keyId}:${secret}`).toString('base64')}`,
      'content-type': 'application/json',
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** Runs a command of the project with the ports and the data folder of this file, until it ends. */
function run(command: 'start' | 'demo' | 'verify', ...options: string[]) {
  const child = spawn(process.execPath, ['tools/scripts/run.mjs', command, ...options], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part: string) => (output += part));
  }
  return once(child, 'close').then(([code]) => ({ code: code as number | null, output }));
}

const MET = { code: 0, output: expect.stringContaining('Everything is as expected') as string };
const refused = (reason: string) => ({
  code: 1,
  output: expect.stringContaining(reason) as string,
});

it(
  'npm run demo and npm run verify find every expectation met after npm start, which stops the servers that a killed npm start left behind and keeps the data',
  async () => {
    const first = await start();
    expect(await run('demo')).toMatchObject(MET);
    expect(await run('verify')).toMatchObject({ code: 0 });
    const customerDetails = { name: 'Ada', email: 'ada@example.com' };
    const created = await call('/customer/create', { customerDetails });
    expect(created.status).toBe(200);
    const credentials = demo();
    expect(statSync(join(dataDir, 'demo.json')).mode & 0o777).toBe(0o600);

    // When only this `npm start` is killed, Postgres and Temporal keep running.
    const foreign = ['postgres', 'temporal'];
    const programs = ['gateway', 'api', 'worker'];
    const ours = programs.map((name) => identify(pidOf(name))!);
    const orphans = foreign.map(pidOf);
    const closed = once(first.child, 'close');
    process.kill(pidOf('start'), 'SIGKILL');
    await closed;
    expect(orphans.map((pid) => identify(pid)?.pid)).toEqual(orphans);
    const second = await start('--gateway', 'stripe-double');

    // Then the second start names these servers, and continues with the data of the first start
    for (const [index, name] of foreign.entries()) {
      expect(second.output()).toContain(
        `stopping ${name} (pid ${orphans[index]}), left behind by an earlier start that was killed`,
      );
    }
    expect(
      ours.map((identity) => identify(identity.pid)?.startedAs === identity.startedAs),
    ).toEqual([false, false, false]);
    const servers = [...foreign, ...programs, 'stripe-mock', 'stripe-double', 'fault-proxy'];
    expect(running().map(({ name }) => name)).toEqual(expect.arrayContaining(servers));
    expect(demo()).toMatchObject({ keyId: credentials['keyId'], secret: credentials['secret'] });
    const read = await call(`/customer/${String(created.body['customerId'])}`);
    expect(read.body).toEqual({ customerId: created.body['customerId'], customerDetails });
    expect(await run('demo')).toMatchObject(refused('For the demo, run npm start with DATA_DIR'));
    expect(await run('verify')).toMatchObject({ code: 0 });

    // And an interrupted start leaves nothing running and every port free
    expect(await interrupt(second.child)).toBe(0);
    expect(running()).toEqual([]);
    await requireFreePorts(
      '127.0.0.1',
      Object.entries(environment)
        .filter(([name]) => name.endsWith('PORT'))
        .map(([variable, port]) => ({ port: Number(port), purpose: variable, variable })),
    );
    expect(await run('start', '--gateway', 'sandbox')).toMatchObject(
      refused('For the sandbox set DATA_DIR to a new folder'),
    );
  },
  3 * READY_WITHIN_MS,
);
