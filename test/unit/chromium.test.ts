import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { chromium } from '../../tools/embedded/chromium.ts';

let folder: string;
let lines: string[];
const report = (line: string): void => void lines.push(line);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'perennial-chromium-'));
  lines = [];
  mkdirSync(join(folder, 'bin'));
  symlinkSync('/bin/sh', join(folder, 'bin', 'sh'));
  vi.stubEnv('PATH', join(folder, 'bin'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

/** Puts a program on PATH. */
function program(name: string, script: string): string {
  const path = join(folder, 'bin', name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

const find = (mayInstall: boolean, chromiumPath?: string) =>
  chromium({ chromiumPath, mayInstall }, report);

test('CHROMIUM_PATH has priority and is refused if it is not an executable file', async () => {
  program('chromium', 'echo Chromium 1');
  const own = join(folder, 'own-browser');
  await expect(find(false, own)).rejects.toThrow(
    `CHROMIUM_PATH is ${own}, which is not an executable file.`,
  );
  writeFileSync(own, '');
  chmodSync(own, 0o755);
  expect(await find(false, own)).toBe(own);
});

test('the first working browser on PATH is used when CHROMIUM_PATH is not set', async () => {
  program('chromium-browser', 'echo "use another way" >&2; exit 1');
  const chrome = program('google-chrome', 'echo Chrome 1');
  expect(await find(true)).toBe(chrome);
  expect(lines).toEqual([]);
});

test('when PATH has no browser, Chromium is installed with apt-get and a line reports the installation', async () => {
  const path = join(folder, 'bin', 'chromium');
  program(
    'apt-get',
    `case "$*" in
       *install*) printf '#!/bin/sh\\necho Chromium 1\\n' > ${path}; /bin/chmod +x ${path};;
     esac
     echo "$*" >> ${folder}/asked`,
  );
  expect(await find(true)).toBe(path);
  expect(lines).toEqual([
    'no browser found; installing Chromium once with apt-get (1 to 2 minutes)',
  ]);
});

test('the error lists the ways to get a browser and the failed attempt when no browser is found', async () => {
  const ways = [
    'No browser found. Do one of these:',
    '  - install Chromium or Chrome so that chromium or chromium-browser or google-chrome is on PATH;',
    '  - set CHROMIUM_PATH to its path.',
  ].join('\n');
  await expect(find(false)).rejects.toThrow(
    `${ways}\nFailed attempt: no installation: only root can install packages`,
  );
  await expect(find(true)).rejects.toThrow(
    `${ways}\nFailed attempt: no installation: apt-get is not on PATH`,
  );
  program('apt-get', 'echo "E: Unable to locate package chromium"; exit 100');
  await expect(find(true)).rejects.toThrow(
    `${ways}\nFailed attempt: apt-get ended with 100\nE: Unable to locate package chromium`,
  );
});
