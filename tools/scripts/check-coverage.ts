// npm run check:coverage: docs/interface-coverage.md lists the rules of the contract, and for each the test files whose
// titles cite the rule. The command fails when the document differs from the titles, when a rule has no test,
// when a title cites an unknown rule, and when the product cites one. With --write it fills in the test files.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { citationsOf, coverageOf } from './check-coverage/coverage.ts';

const DOCUMENT = 'docs/interface-coverage.md';

const PRODUCT = [
  'activities',
  'api',
  'db',
  'domain',
  'gateways',
  'runtime',
  'temporal',
  'workflows',
];

const written = existsSync(DOCUMENT) ? readFileSync(DOCUMENT, 'utf8') : '';
const { document, problems: uncovered } = coverageOf(written, readFiles(['test']));
const problems = [...uncovered, ...citationsOf(readFiles([...PRODUCT, 'worker.ts']))];
if (process.argv.includes('--write')) writeFileSync(DOCUMENT, document);
else if (written !== document) {
  console.error(`${DOCUMENT} is out of date: run npm run check:coverage -- --write`);
  process.exitCode = 1;
}
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;

function readFiles(below: readonly string[]): Map<string, string> {
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', ...below]);
  const paths = listed.toString().split('\n').toSorted();
  const files = paths.filter((path) => /\.tsx?$/.test(path) && existsSync(path));
  return new Map(files.map((path) => [path, readFileSync(path, 'utf8')]));
}
