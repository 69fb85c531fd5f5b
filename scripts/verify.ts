// npm run verify: checks the invariants of the data. The command compares Postgres with the gateway's records
// and, if given, with the records of webhook receivers and clients. The command writes nothing, so it may run
// against a live system at any time. If an invariant is violated, the command lists the violations and exits
// with 1.

import { readDemoFile } from '../embedded/demo-file.ts';
import { loadEmbeddedConfig } from '../runtime/config.ts';
import { grouped, print, runScript } from './client/terminal.ts';
import { openBooks } from '../proof/verify/books.ts';
import type { Places } from '../proof/verify/books.ts';
import { checkBooks } from '../proof/verify/invariants.ts';
import { printResult } from '../proof/verify/print-result.ts';
import { readRepairs } from '../proof/verify/repairs.ts';
import type { Repairs } from '../proof/verify/repairs.ts';
import { commandLine } from './client/options.ts';

interface Options {
  readonly databaseUrl?: string;
  readonly gatewayUrl?: string;
  readonly gatewayKey?: string;
  readonly receiverBook?: string;
  readonly clientBook?: string;
  readonly json?: boolean;
}

const program = commandLine(
  'run verify',
  'Compares all records: every due cycle is charged once, every event is delivered.',
)
  .option('--database-url <url>', 'default: that of the running npm start')
  .option(
    '--gateway-url <url>',
    'requires --gateway-key; default: that of the running npm start on the same database',
  )
  .option('--gateway-key <key>', 'key of the sandbox gateway')
  .option('--receiver-book <file>', 'received webhooks, one JSON object a line')
  .option('--client-book <file>', 'answers of the API, one JSON object a line')
  .option('--json', 'print the result as JSON');

await runScript(async () => {
  const options = program.parse().opts<Options>();
  const books = await openBooks(placesOf(options));
  try {
    const results = await checkBooks(books);
    const repairs = await readRepairs(books);
    if (options.json) print(JSON.stringify({ verdicts: results, repairs }, null, 2));
    else {
      results.forEach(printResult);
      printRepairs(repairs);
    }
    return results.every(({ wrong }) => wrong.length === 0) ? 0 : 1;
  } finally {
    await books.close();
  }
});

function placesOf(options: Options): Places {
  const { databaseUrl, gatewayUrl, gatewayKey, receiverBook = null, clientBook = null } = options;
  if (databaseUrl !== undefined) {
    const gateway =
      gatewayUrl !== undefined && gatewayKey !== undefined
        ? { url: gatewayUrl, key: gatewayKey }
        : null;
    return { databaseUrl, gateway, receiverBook, clientBook };
  }
  const demo = readDemoFile(loadEmbeddedConfig().dataDir);
  const gateway = { url: demo.gatewayUrl, key: demo.gatewayKey };
  return { databaseUrl: demo.databaseUrl, gateway, receiverBook, clientBook };
}

/**
 * Repairs are no violations, because they are expected after a crash. If the count grows without crashes, an
 * operator must find the cause.
 */
function printRepairs(repairs: readonly Repairs[]): void {
  print(`  Repairs by the sweeps so far: ${repairs.length === 0 ? 'none' : ''}`);
  for (const { kind, repaired, lastAt } of repairs) {
    print(`       ${kind}: ${grouped(repaired)}, last at ${lastAt}`);
  }
}
