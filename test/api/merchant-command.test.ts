import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createApiWorld } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld();
});
afterAll(() => world.close());

/** Runs `npm run merchant -- …` against the world's database. */
async function merchant(...args: string[]) {
  const run = promisify(execFile)(
    process.execPath,
    ['--import', 'tsx', 'scripts/merchant.ts', ...args],
    {
      env: {
        ...process.env,
        DATABASE_URL: world.databaseUrl,
        CREDENTIAL_PEPPER: world.pepper,
      },
    },
  );
  return run.catch((error: { code: number; stdout: string; stderr: string }) => error);
}

interface Issued {
  merchantId: string;
  keyId: string;
  secret: string;
}

const list = (as: { keyId: string; secret: string }) => world.call('GET', '/webhook', { as });

test('a merchant is made, its credential replaced and revoked from the command line [D-20]', async () => {
  const made = await merchant('create', '--name', 'Shop "A"', '--json');
  const first = JSON.parse(made.stdout) as Issued;
  expect(first).toMatchObject({
    merchantId: expect.stringMatching(/^mer_/),
    name: 'Shop "A"',
    mode: 'test',
    keyId: expect.stringMatching(/^mk_test_/),
    secret: expect.stringMatching(/^sk_test_/),
  });
  expect((await list(first)).status).toBe(200);

  const rotated = await merchant('rotate', first.keyId, '--json');
  const second = JSON.parse(rotated.stdout) as Issued;
  expect((await list(second)).status).toBe(200);
  expect((await list(first)).status).toBe(200);

  const revoked = await merchant('revoke', second.keyId);
  expect(revoked.stdout).toBe(`${second.keyId} is revoked.\n`);

  const listed = await merchant('list');
  expect(listed.stdout).toContain(`${first.merchantId}  test  "Shop "A""`);
  expect(listed.stdout).toMatch(new RegExp(`${first.keyId}  works until \\d{4}-`));
  expect(listed.stdout).toMatch(new RegExp(`${second.keyId}  revoked \\d{4}-`));
  expect(listed.stdout).not.toContain('sk_test_');
});

test('live credentials are refused while no live gateway is configured [D-20]', async () => {
  const before = await world.countRows();
  const refused = await merchant('create', '--name', 'Live', '--mode', 'live');
  expect(refused).toMatchObject({
    code: 1,
    stdout: '',
    stderr: 'No live gateway is configured, so there can be no live credentials.\n',
  });
  expect(await world.countRows()).toEqual(before);
});

test('an unknown credential is one clear line and code 1 [D-20]', async () => {
  expect(await merchant('revoke', 'mk_test_nobody')).toMatchObject({
    code: 1,
    stderr: 'There is no working credential mk_test_nobody.\n',
  });
  expect(await merchant('rotate', 'mk_test_nobody')).toMatchObject({ code: 1 });
});
