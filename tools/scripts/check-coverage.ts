// npm run check:coverage: every rule of docs/interface-coverage.md needs a test that exists and runs, and
// every rule id that the project cites needs a row in this document. Otherwise the command lists the problems
// and exits with 1.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { readRows } from './check-coverage/rows.ts';
import type { Proof, Row } from './check-coverage/rows.ts';
import { readTitles } from './check-coverage/titles.ts';
import type { Titles } from './check-coverage/titles.ts';

const DOCUMENT = 'docs/interface-coverage.md';
const CITATION = /\b(?:D-\d\d[a-z]?|IF-\d{1,2}(?:\.\d{1,2})?)\b|\bD-§\d/g;
const CITING = /^(?!docs\/interface-coverage\.md).*\.(?:tsx?|mjs|cjs|sql|md|ya?ml)$/;
/**
 * Minimum length, in characters, of the part of a test's title by which a row names the test. A shorter part
 * could match another test.
 */
const PART_MIN = 8;

const known = new Map<string, Titles>();
const rows = readRows(readFileSync(DOCUMENT, 'utf8'));
const problems = [...rows.flatMap(problemsOf), ...uncovered(new Set(rows.map(({ id }) => id)))];
const proofs = rows.reduce((sum, row) => sum + row.proofs.length, 0);
if (problems.length > 0) {
  for (const problem of problems) console.error(problem);
  console.error(`${DOCUMENT}: ${problems.length} problems`);
  process.exit(1);
}
console.log(`${DOCUMENT}: ${rows.length} statements, ${proofs} proofs by a test`);

function problemsOf(row: Row): string[] {
  const where = `${DOCUMENT}:${row.line} ${row.id}`;
  if (row.proofs.length === 0) return [`${where}: no test proves "${row.statement}"`];
  return row.proofs.flatMap((proof) => {
    const problem = proofProblem(proof);
    return problem === null ? [] : [`${where}: ${problem}`];
  });
}

function proofProblem({ file, part }: Proof): string | null {
  const path = [`test/${file}.test.ts`, `test/${file}.test.tsx`, `test/${file}.ts`].find(
    existsSync,
  );
  if (path === undefined) return `there is no test file ${file}`;
  if (part.length < PART_MIN) return `"${part}" is too short`;
  const { running, skipped } = titlesOf(path);
  const found = running.filter((title) => title.includes(part));
  if (found.length === 1) return null;
  if (found.length > 1) return `${found.length} tests of ${path} are called "${part}"`;
  return skipped.some((title) => title.includes(part))
    ? `"${part}" of ${path} is skipped`
    : `${path} has no test "${part}"`;
}

function titlesOf(path: string): Titles {
  const read = known.get(path) ?? readTitles(path);
  known.set(path, read);
  return read;
}

/** One sentence for each rule id that a file cites and that has no row in the document. */
function uncovered(covered: ReadonlySet<string>): string[] {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard']);
  const files = listed
    .toString()
    .split('\n')
    .filter((path) => CITING.test(path) && existsSync(path));
  const firstCitedBy = new Map<string, string>();
  for (const path of files) {
    for (const [id] of readFileSync(path, 'utf8').matchAll(CITATION)) {
      if (!covered.has(id) && !firstCitedBy.has(id)) firstCitedBy.set(id, path);
    }
  }
  return [...firstCitedBy].map(([id, path]) => `${path} cites ${id}, which has no row`);
}
