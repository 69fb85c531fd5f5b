import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test as base } from 'vitest';

const execute = promisify(execFile);
const program = (name: string): string => resolve('node_modules/.bin', name);

/** A merchant's program. The last three calls must not compile. */
const PROGRAM = `
import { createClient, PerennialError, verifyWebhook } from 'perennial-client';
import type { CreateSubscriptionRequest, Event } from 'perennial-client';

const client = createClient({ apiUrl: 'http://127.0.0.1:1', keyId: 'k', secret: 's', patienceMs: 0 });
const order: CreateSubscriptionRequest = {
  amount: 1999, currency: 'USD', interval: 'MONTH', intervalCount: 1, cycleCount: 12,
  customerDetails: { name: 'Ada' }, callbackUrl: 'https://merchant.example/back',
};
export async function main(): Promise<string> {
  const { subscriptionId } = await client.createSubscription({ body: order });
  for await (const intent of client.each('listIntents', { query: { subscriptionId } })) {
    const amount: number = intent.amount;
    void amount;
  }
  for await (const { events } of client.feed({ types: ['intent.success'] })) {
    const [first] = events;
    if (first?.event.eventType === 'subscription.cycle_charged') return String(first.event.cycleNumber);
  }
  return subscriptionId;
}
export const eventOf = (body: Uint8Array, headers: Headers): Event =>
  verifyWebhook({ body, headers, secret: 'whsec_AAAA' });

// @ts-expect-error: 'FORTNIGHT' is no interval.
export const wrongInterval: CreateSubscriptionRequest = { ...order, interval: 'FORTNIGHT' };
// @ts-expect-error: the path is missing.
export const withoutPath = () => client.getCustomer();
// @ts-expect-error: an answer of this operation is no list.
export const noList = () => client.each('getCustomer');

try { await main(); } catch (error) {
  if (error instanceof PerennialError) console.log(error.name, error.message);
}
`;

const CONFIG = {
  compilerOptions: {
    module: 'nodenext',
    target: 'es2023',
    strict: true,
    exactOptionalPropertyTypes: true,
    types: ['node'],
    typeRoots: [resolve('node_modules/@types')],
  },
  include: ['*.ts'],
};

/** The packed client, and a project that installed it. */
const test = base
  .extend('source', { scope: 'file' }, 'client')
  .extend('project', { scope: 'file' }, async ({ source }, { onCleanup }) => {
    const folder = await mkdtemp(join(tmpdir(), 'client-package-'));
    onCleanup(() => rm(folder, { recursive: true }));
    const cwd = join(folder, 'project');
    await mkdir(cwd);
    const pack = ['pack', '--silent', '--pack-destination', folder];
    const { stdout } = await execute('npm', pack, { cwd: source });
    const tarball = join(folder, stdout.trim().split('\n').at(-1) ?? '');
    await writeFile(join(cwd, 'package.json'), JSON.stringify({ type: 'module' }));
    await writeFile(join(cwd, 'tsconfig.json'), JSON.stringify(CONFIG));
    await writeFile(join(cwd, 'program.ts'), PROGRAM);
    await execute('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], { cwd });
    return { cwd, tarball };
  });

test('the packed client holds the compiled files, their types and the README alone', async ({
  project,
}) => {
  const { stdout } = await execute('tar', ['-tzf', project.tarball]);
  const modules = ['client', 'index', 'operations.gen', 'request', 'types.gen', 'webhook'];
  const files = modules.flatMap((name) => [`dist/${name}.d.ts`, `dist/${name}.js`]);
  expect(stdout.trim().split('\n').toSorted()).toEqual(
    ['README.md', ...files, 'package.json'].map((file) => `package/${file}`).toSorted(),
  );
});

test('a program that installed the client compiles and runs, and wrong calls do not compile', async ({
  project: { cwd },
}) => {
  await execute(program('tsc'), ['-p', '.'], { cwd });
  const { stdout } = await execute(process.execPath, ['program.js'], { cwd });
  expect(stdout).toBe('PerennialError POST /subscription/create: no answer (bad port)\n');
});

test('publint and attw find no fault in the packed client', async ({ project: { tarball } }) => {
  const lint = await execute(program('publint'), ['run', '--strict', tarball]);
  expect(lint.stdout).toContain('All good!');
  const types = await execute(program('attw'), ['--profile', 'esm-only', '--no-color', tarball]);
  expect(types.stdout).toMatch(/node16 \(from ESM\) *│ 🟢 \(ESM\)/u);
});
