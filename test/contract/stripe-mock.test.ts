import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startStripeMock, stripeMockFiles } from '../../tools/embedded/stripe-mock.ts';
import type { StripeMock, StripeMockFiles } from '../../tools/embedded/stripe-mock.ts';
import { ComponentMissingError } from '../../tools/embedded/temporal-cli.ts';
import { loadEmbeddedConfig } from '../../runtime/config.ts';
import { eventually } from '../support/eventually.ts';

let files: StripeMockFiles;
let mock: StripeMock;
beforeAll(async () => {
  files = await stripeMockFiles(loadEmbeddedConfig().cacheDir, () => undefined);
  mock = await startStripeMock(files.program);
});
afterAll(() => mock?.stop());

const create = async (body: string, version: string) => {
  const response = await fetch(`${mock.url}/v1/payment_intents`, {
    method: 'POST',
    headers: {
      authorization: 'Bearer sk_test_1',
      'content-type': 'application/x-www-form-urlencoded',
      'stripe-version': version,
    },
    body,
  });
  await response.body?.cancel();
  return response.status;
};

describe('stripe-mock', () => {
  it('accepts a valid request and refuses an unknown parameter and another API version', async () => {
    const valid = 'amount=500&currency=usd';
    expect(await create(valid, '2026-08-26.dahlia')).toBe(200);
    expect(await create(`${valid}&colour=red`, '2026-08-26.dahlia')).toBe(400);
    expect(await create(valid, '2025-03-31.basil')).toBe(400);
  });

  it('comes with the OpenAPI document of the pinned API version', async () => {
    const spec = JSON.parse(await readFile(files.specFile, 'utf8')) as {
      info: { version: string };
    };
    expect(spec.info.version).toBe('2026-08-26.dahlia');
  });

  it('ends when the process that started it is killed', async () => {
    const module = pathToFileURL(join(process.cwd(), 'tools/embedded/stripe-mock.ts')).href;
    const code = `
      const { startStripeMock } = await import(${JSON.stringify(module)});
      const mock = await startStripeMock(${JSON.stringify(files.program)});
      console.log(mock.url);
      setInterval(() => undefined, 1000);`;
    const parent = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(parent.stdout.setEncoding('utf8'), 'data')) as [string];
    const url = line.trim();
    expect((await fetch(url)).status).toBe(401);
    parent.kill('SIGKILL');
    await eventually(() => expect(fetch(url)).rejects.toThrow('fetch failed'));
  });

  it('is reported missing, with the advice to install Go, when Go is missing', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'perennial-no-go-'));
    await symlink('/bin/sh', join(folder, 'sh'));
    vi.stubEnv('PATH', folder);
    try {
      const cacheDir = join(folder, 'cache');
      const failure = stripeMockFiles(cacheDir, () => undefined);
      await expect(failure).rejects.toThrow(ComponentMissingError);
      await expect(failure).rejects.toThrow(/Install Go 1\.24.*`go` is not on PATH/s);
      expect(await readdir(cacheDir)).toEqual([]);
    } finally {
      vi.unstubAllEnvs();
      await rm(folder, { recursive: true });
    }
  });
});
