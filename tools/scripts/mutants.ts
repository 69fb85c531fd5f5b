// npm run mutants exits with 1 if the tests miss a defect, or if a test fails without a defect.

import { execFileSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { CommandError, runCommand } from '../embedded/run-command.ts';
import { print, runScript, styled } from '../../cli/command-line/terminal.ts';
import { MUTANTS } from '../proof/mutants/planted.ts';
import type { Mutant } from '../proof/mutants/planted.ts';
import { commandLine } from '../../cli/command-line/options.ts';

/** Time limit in ms of a test run. A longer run is killed, and the command fails. */
const RUN_WITHIN_MS = 10 * 60_000;

interface TestResults {
  readonly failed: readonly string[];
  readonly passed: number;
}

const program = commandLine(
  'run mutants',
  'Plants the defects of tools/proof/mutants/planted.ts in a copy of this checkout; a test must detect each.',
).option('--only <text>', 'plant only the defects whose description contains this text');

await runScript(async () => {
  const { only = '' } = program.parse().opts<{ only?: string }>();
  const chosen = MUTANTS.filter(({ defect }) => defect.includes(only));
  const folder = mkdtempSync(join(tmpdir(), 'perennial-mutants-'));
  try {
    copyCheckout(folder);
    let isFine = true;
    for (const test of new Set(chosen.map((mutant) => mutant.test))) {
      const { failed, passed } = await runTest(folder, test);
      const isGreen = failed.length === 0 && passed > 0;
      isFine &&= isGreen;
      print(`  ${mark(isGreen)} without a defect: ${test}, ${passed} tests`);
      for (const title of failed) print(`       ${title}`);
    }
    for (const mutant of chosen) {
      const undo = plant(folder, mutant);
      const { test, only: title } = mutant;
      const { failed } = await runTest(folder, test, title).finally(undo);
      const [first] = failed;
      isFine &&= first !== undefined;
      const noticed = first === undefined ? 'NO TEST NOTICED' : `${failed.length}: ${first}`;
      print(`  ${mark(first !== undefined)} ${mutant.defect}\n       ${styled('dim', noticed)}`);
    }
    print();
    return isFine ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

function mark(isFine: boolean): string {
  return isFine ? styled('green', '✓') : styled('red', '✗');
}

function copyCheckout(folder: string): void {
  const listed = execFileSync('git', ['ls-files', '-z'], { encoding: 'utf8' });
  for (const file of listed.split('\0').filter(Boolean)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(file, join(folder, file));
  }
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
}

function plant(folder: string, { file, find, replace, defect }: Mutant): () => void {
  const path = join(folder, file);
  const text = readFileSync(path, 'utf8');
  if (text.split(find).length !== 2) {
    throw new Error(`"${defect}": its text must occur exactly once in ${file}`);
  }
  writeFileSync(
    path,
    text.replace(find, () => replace),
  );
  return () => writeFileSync(path, text);
}

/** Runs the tests of a file; with `title`, only the tests whose name contains `title`. */
async function runTest(folder: string, test: string, title?: string): Promise<TestResults> {
  const results = join(folder, 'results.json');
  rmSync(results, { force: true });
  const args = [
    'node_modules/vitest/vitest.mjs',
    'run',
    // The folder's name is the project's.
    `--project=${test.split('/')[1]}`,
    test,
    '--reporter=json',
    `--outputFile.json=${results}`,
    ...(title === undefined ? [] : [`--testNamePattern=${title}`]),
  ];
  const options = { timeoutMs: RUN_WITHIN_MS, cwd: folder };
  // A failed test is in the results; a run without results fails below.
  await runCommand(process.execPath, args, options).catch((error: unknown) => {
    if (!(error instanceof CommandError)) throw error;
  });
  return readResults(results);
}

interface VitestResults {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** A file that does not compile has no failed test, so it does not detect a defect. */
function readResults(file: string): TestResults {
  const { testResults } = JSON.parse(readFileSync(file, 'utf8')) as VitestResults;
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  return {
    failed: tests.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName),
    passed: tests.filter(({ status }) => status === 'passed').length,
  };
}
