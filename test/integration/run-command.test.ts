import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';

let folder: string;

// A checkout without packages. Its `npm` on PATH records that it was called, and installs nothing.
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'perennial-run-'));
  for (const file of ['package.json', 'package-lock.json', 'tools/scripts/run.mjs']) {
    cpSync(file, join(folder, file), { recursive: true });
  }
  mkdirSync(join(folder, 'bin'));
  const npm = '#!/bin/sh\necho "added 300 packages"\ntouch npm-was-called\nmkdir -p node_modules\n';
  writeFileSync(join(folder, 'bin/npm'), npm, { mode: 0o755 });
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(command: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const path = `${join(folder, 'bin')}${delimiter}${process.env['PATH']}`;
  return new Promise((done) => {
    execFile(
      process.execPath,
      [join(folder, 'tools/scripts/run.mjs'), command],
      { env: { ...process.env, PATH: path } },
      (error, stdout, stderr) => done({ code: Number(error?.code ?? 0), stdout, stderr }),
    );
  });
}

it.for(['merchant', 'import', 'review', 'verify', 'demo'])(
  'npm run %s installs no packages below running processes and prints nothing to stdout',
  async (command) => {
    expect(await run(command)).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'The packages in node_modules are not there yet. This command installs none, because processes ' +
        'of this checkout may be using them. Stop these processes, then run npm ci.\n',
    });
    expect(existsSync(join(folder, 'npm-was-called'))).toBe(false);
  },
);

it('npm run check installs the packages and prints the lines of the installation to stderr', async () => {
  const { stdout, stderr } = await run('check');
  expect(readFileSync(join(folder, 'node_modules/.perennial-lock'), 'utf8')).toMatch(
    /^[0-9a-f]{64} /,
  );
  expect(stderr).toBe(
    'packages are not there yet; installing them with npm ci (about half a minute)\n' +
      'added 300 packages\n',
  );
  expect(stdout).not.toContain('packages are');
});
