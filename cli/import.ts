// npm run import: imports the subscriptions of a merchant from another system. Without --commit the command
// only checks the file: it reads every payment method at the gateway and writes the report, and nothing else.
// docs/importing.md describes the file. Exits with 1 if a line has a problem.

import { randomBytes } from 'node:crypto';
import { basename } from 'node:path';
import { statSync } from 'node:fs';
import { DrizzleQueryError } from 'drizzle-orm';
import { useCurrencies } from '../api/fields.ts';
import { findSettings } from '../db/repositories/merchants/settings.ts';
import type { ActionFacts } from '../db/schema/operator-actions.ts';
import { byOption, recorder } from './command-line/operator-action.ts';
import { commandLine } from './command-line/options.ts';
import { connectWorkflows, withDatabase } from './command-line/servers.ts';
import { jsonText, print, runScript } from './command-line/terminal.ts';
import { gatewaysOf, placeOf } from './import/place.ts';
import { problemLine, summaryLines } from './import/print-summary.ts';
import { showProgress } from './import/progress.ts';
import { runImport } from './import/run.ts';

/** Maximum number of problems on the terminal. The report has all. */
const SHOWN_PROBLEMS = 20;

interface Options {
  readonly commit?: boolean;
  readonly report?: string;
  readonly json?: boolean;
  readonly by: string;
}

const program = commandLine(
  'run import',
  'Imports subscriptions from another system. Without --commit it only checks the file.',
)
  .argument('<merchantId>', 'mer_…, from npm run merchant -- list')
  .argument('<file>', 'one subscription a line, as JSON; see docs/importing.md')
  .option('--commit', 'import the lines without a problem')
  .option(
    '--report <file>',
    'where the report goes; default: the file with the ending .report.jsonl',
  )
  .option('--json', 'print the summary as JSON')
  .addOption(byOption());

await runScript(() => main().catch((error: unknown) => Promise.reject(withoutData(error))));

async function main(): Promise<number> {
  const [merchantId = '', file = ''] = program.parse().args;
  const options = program.opts<Options>();
  const commit = options.commit === true;
  const reportFile = options.report ?? `${file.replace(/\.jsonl$/, '')}.report.jsonl`;
  const bytes = sizeOf(file);
  if (isSameFile(reportFile, file)) throw new Error('The report would replace the file.');

  const place = placeOf();
  useCurrencies(place.currencies);
  const progress = showProgress(bytes, process.stderr);
  const { databaseUrl: url } = place;
  return withDatabase({ url, command: 'import', poolSize: 8 }, async (db) => {
    const { workflows, close } = connectWorkflows(db, place);
    try {
      if ((await findSettings(db, merchantId)) === null) {
        throw new Error(`There is no merchant ${merchantId}.`);
      }
      const record = recorder(options.by);
      const recordOf = async (command: string, facts: ActionFacts): Promise<void> => {
        if (commit) await record(db, { command, subject: merchantId, merchantId, facts });
      };
      // Each line is a transaction of its own. A killed import has the first of the two rows.
      await recordOf('import', { file: basename(file), bytes });
      const problems: string[] = [];
      const result = await runImport(
        {
          db,
          merchantId,
          gateway: await gatewaysOf(place, db).forNewMethods(merchantId),
          workflows,
          random: randomBytes,
          now: Date.now,
          renewalsPerSecond: place.renewalsPerSecond,
        },
        {
          file,
          reportFile,
          commit,
          onLine: (lineBytes) => progress.add(lineBytes),
          onProblem: (line) => {
            if (problems.length < SHOWN_PROBLEMS) problems.push(problemLine(line));
          },
        },
      );
      await recordOf('import ended', result.lines);
      progress.end();
      if (options.json === true) print(jsonText({ ...result, commit, reportFile }, 2));
      else summaryLines(result, { commit, reportFile, problems }).forEach((line) => print(line));
      return result.lines.problem === 0 ? 0 : 1;
    } finally {
      progress.end();
      await close();
    }
  });
}

function withoutData(error: unknown): unknown {
  return error instanceof DrizzleQueryError ? error.cause : error;
}

function isSameFile(one: string, other: string): boolean {
  const [a, b] = [one, other].map((path) =>
    statSync(path, { bigint: true, throwIfNoEntry: false }),
  );
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;
}

function sizeOf(file: string): number {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found?.isFile() !== true) throw new Error(`There is no file ${file}.`);
  return found.size;
}
