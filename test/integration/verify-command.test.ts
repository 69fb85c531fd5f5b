import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, test as base } from 'vitest';
import { createDb } from '../../db/client.ts';
import { paymentIntents } from '../../db/schema/payments.ts';
import { bundledProgram } from '../../tools/embedded/program-bundle.ts';
import { createTestDatabase } from '../support/database.ts';
import { KEEP_ALIVE_MS } from '../../tools/scripts/client/listen.ts';

/** `npm run verify` with the data folder of an `npm start` whose database is empty, and another, damaged database. */
// oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
const test = base.extend('verifier', async ({}, { onCleanup }) => {
  const [healthy, damaged] = [await createTestDatabase(), await createTestDatabase()];
  const remote = await createTestDatabase();
  const dataDir = await mkdtemp(join(tmpdir(), 'perennial-verify-'));
  const database = createDb({ url: damaged.url, poolSize: 1, applicationName: 'test-verify' });
  const gateway = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (_, response) => {
    response.end(JSON.stringify({ gateway: 'sandbox', charges: [], next: null }));
  });
  await once(gateway.listen(0, '127.0.0.1'), 'listening');
  const demo = {
    databaseUrl: healthy.url,
    gatewayUrl: `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`,
    gatewayKey: 'gateway-key-of-the-verify-test-000001',
  };
  onCleanup(async () => {
    gateway.close();
    await database.close();
    await Promise.all([healthy, damaged, remote].map((each) => each.drop()));
    await rm(dataDir, { recursive: true });
  });
  await writeFile(join(dataDir, 'demo.json'), JSON.stringify(demo));
  const damage = (id: string) =>
    database.db.insert(paymentIntents).values({
      merchantId: 'mer_1',
      id,
      kind: 'tokenised',
      customerId: 'cus_1',
      amountMinor: 100,
      currency: 'USD',
      presentmentCurrency: 'USD',
      status: 'SUCCESS',
      customerDetails: {},
      createdAt: Date.now(),
    });
  await damage('in_paid');
  const program = bundledProgram(inject('programFolder'), 'cli/verify.ts');
  const env = { ...process.env, DATA_DIR: dataDir };
  return {
    healthy,
    damaged,
    remote,
    damage,
    gateway: { GATEWAY_URL: demo.gatewayUrl, GATEWAY_KEY: demo.gatewayKey },
    run: (DATABASE_URL: string, ...args: string[]) => runWith({ DATABASE_URL }, ...args),
    runWith,
  };

  async function runWith(settings: Record<string, string>, ...args: string[]) {
    const command = promisify(execFile)(process.execPath, [...program, ...args], {
      env: { ...env, ...settings },
    });
    const { code, stdout } = await command.then(
      (result) => ({ code: 0, ...result }),
      (error: { code: number; stdout: string }) => error,
    );
    return { code, stdout };
  }
});

const heading = (url: string) =>
  `Database ${new URL(url).pathname.slice(1)} at ${new URL(url).host}`;

test('npm run verify checks the database of DATABASE_URL, not that of npm start, and names it without its password [D-40]', async ({
  verifier,
}) => {
  const { healthy, damaged, run } = verifier;
  const checked = await run(damaged.url);
  expect(checked.stdout).toContain('in_paid is SUCCESS with 0 attempts that succeeded');
  expect(checked.code).toBe(1);
  expect(checked.stdout.split('\n')[0]).toBe(heading(damaged.url));

  // Nothing is set, so the command uses npm start's database and its gateway.
  const local = await run('');
  expect(local.stdout.split('\n')[0]).toBe(heading(healthy.url));
  expect(local.code).toBe(0);

  const chosen = await run(damaged.url, '--database-url', healthy.url);
  expect(chosen.stdout.split('\n')[0]).toBe(heading(healthy.url));
  expect(chosen.code).toBe(0);
});

test('npm run verify reads the gateway of GATEWAY_URL and GATEWAY_KEY, and exits with 2 if no gateway was read [D-40]', async ({
  verifier,
}) => {
  const { remote, gateway, runWith } = verifier;
  const settings = { DATABASE_URL: remote.url };
  const without = await runWith(settings);
  expect(without.stdout.split('\n').filter((line) => /^ +. 3\. /.test(line))).toEqual([
    '  · 3. the gateway charged the owed amount (0 checked)',
  ]);
  expect(without.stdout).toContain(
    '     · not checked: no book of a gateway: GATEWAY_URL and GATEWAY_KEY are not set, and no account at Stripe was read\n',
  );
  expect(without.code).toBe(2);

  const complete = await runWith({ ...settings, ...gateway });
  expect(complete.stdout).toContain('  ✓ 3. the gateway charged the owed amount (0 checked)\n');
  expect(complete.stdout).toContain(
    '     · not checked: no book of a client: --client-book is not set\n',
  );
  expect(complete.code).toBe(0);
});
