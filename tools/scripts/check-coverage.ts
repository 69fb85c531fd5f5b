// npm run check:coverage: docs/interface-coverage.md lists for each rule of the contract the test files whose
// titles cite the rule. The command fails when the document differs from the titles, when a rule has no test,
// and when a title cites an unknown rule. With --write it writes the document.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { coverageOf } from './check-coverage/coverage.ts';

const DOCUMENT = 'docs/interface-coverage.md';

const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', 'test']);
const paths = listed.toString().split('\n').toSorted();
const tests = paths.filter((path) => /\.tsx?$/.test(path) && existsSync(path));
const { document, problems } = coverageOf(
  new Map(tests.map((path) => [path, readFileSync(path, 'utf8')])),
);
const isWritten = existsSync(DOCUMENT) && readFileSync(DOCUMENT, 'utf8') === document;
if (process.argv.includes('--write')) writeFileSync(DOCUMENT, document);
else if (!isWritten) {
  console.error(`${DOCUMENT} is out of date: run npm run check:coverage -- --write`);
  process.exitCode = 1;
}
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
