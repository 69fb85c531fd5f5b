import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'perennial-coverage-'));
  execFileSync('git', ['init', '--quiet'], { cwd: folder });
  write('test/unit/money.test.ts', [
    "describe('money', () => {",
    "  test('is counted in cents [D-01]', () => {});",
    "  test.skip('is printed in dollars', () => {});",
    '  test.each(CASES)(`of ${currency} has its digits [D-02]`, () => {});',
    '});',
    "const CASES = [['a text instead of a number [D-01]', '1999']];",
    '// test("only a comment [D-01]")',
  ]);
  write('domain/money.ts', ['/** Rule: D-01. */', 'export const one = 100;']);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, lines: readonly string[]): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), lines.join('\n'));
}

/** Writes a document with these rows into the folder and runs the check there. */
async function check(...rows: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const table = ['| Rule | Statement | Proved by |', '|---|---|---|', ...rows];
  write('docs/interface-coverage.md', table);
  const tsx = pathToFileURL(resolve('node_modules/tsx/dist/loader.mjs')).href;
  const run = promisify(execFile)(
    process.execPath,
    ['--import', tsx, resolve('tools/scripts/check-coverage.ts')],
    { cwd: folder },
  );
  return run.then(
    (ended) => ({ code: 0, ...ended }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
}

const CENTS = '| D-01 | Amounts are cents. | `unit/money` is counted in cents |';

test('a row passes when it cites a title, a case name or a title with a placeholder', async () => {
  expect(
    await check(
      CENTS,
      '| D-02 | No texts. | `unit/money` a text instead of a number<br>`unit/money` has its digits |',
    ),
  ).toMatchObject({
    code: 0,
    stdout: 'docs/interface-coverage.md: 2 statements, 3 proofs by a test\n',
  });
});

test('the check reports the line of a row that cites no test, a missing test or a skipped test', async () => {
  const { code, stderr } = await check(
    CENTS,
    '| D-02 | Digits. |  |',
    '| D-03 | Dollars. | `unit/money` is printed in dollars |',
    '| D-04 | Comments. | `unit/money` only a comment |',
    '| D-05 | Elsewhere. | `unit/gone` is counted in cents |',
    '| D-06 | Both. | `unit/money` is counted |',
    '| D-10 | Too short. | `unit/money` cents |',
    '| D-11 | Later. | TODO |',
  );
  expect(code).toBe(1);
  expect(stderr.split('\n')).toEqual([
    'docs/interface-coverage.md:4 D-02: no test proves "Digits."',
    'docs/interface-coverage.md:5 D-03: "is printed in dollars" of test/unit/money.test.ts is skipped',
    'docs/interface-coverage.md:6 D-04: test/unit/money.test.ts has no test "only a comment"',
    'docs/interface-coverage.md:7 D-05: there is no test file unit/gone',
    'docs/interface-coverage.md:9 D-10: "cents" is too short',
    'docs/interface-coverage.md:10 D-11: there is no test file of "TODO"',
    'docs/interface-coverage.md: 6 problems',
    '',
  ]);
});

test('the check fails when a cited rule has no row, and when a row is malformed', async () => {
  // The unknown id is not written out here, because the check of this project reads this file, too.
  const unknown = ['D', 99].join('-');
  write('domain/late.ts', [`// Rules: D-01, ${unknown}, IF-4.9.`]);
  expect((await check(CENTS)).stderr).toContain(
    `domain/late.ts cites ${unknown}, which has no row\ndomain/late.ts cites IF-4.9, which has no row\n`,
  );
  expect((await check('| D-01 | Amounts. `unit/money` is counted |')).stderr).toContain(
    'line 3 is not | rule | statement | proofs |',
  );
});
