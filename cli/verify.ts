// npm run verify compares Postgres with the books of the gateways and, if given, of webhook receivers and clients.
// Without --adopt and --accept it changes no data, so it may run against a live system at any time. Exits with 1 if an invariant is
// violated, else with 2 if the book of a gateway was not read.

import { COMPANIES } from '../gateways/processors.ts';
import { createSealing } from '../runtime/sealing.ts';
import { connectWorkflows, withDatabase } from './command-line/servers.ts';
import { grouped, print, printable, runScript } from './command-line/terminal.ts';
import { accept } from './verify/acceptance.ts';
import { adopt, findNewerRuns } from './verify/adopt.ts';
import { openBooks } from './verify/books.ts';
import type { Places } from './verify/books.ts';
import { checkBooks } from './verify/invariants.ts';
import type { CheckResult } from './verify/invariants.ts';
import { findLost } from './verify/lost-records.ts';
import { findLostRows, foreignLines } from './verify/lost-rows.ts';
import { printResult } from './verify/print-result.ts';
import { readRepairs } from './verify/repairs.ts';
import type { Repairs } from './verify/repairs.ts';
import { ADOPTED } from '../db/repositories/operator-actions.ts';
import { byOption, recorder } from './command-line/operator-action.ts';
import type { Recorder } from './command-line/operator-action.ts';
import { commandLine, wholeNumber } from './command-line/options.ts';
import { commandPlace } from './command-line/place.ts';

interface Options {
  readonly databaseUrl?: string;
  readonly receiverBook?: string;
  readonly clientBook?: string;
  readonly days: number;
  readonly json?: boolean;
  readonly adopt?: boolean;
  readonly accept?: string;
  readonly note?: string;
  readonly by: string;
}

const program = commandLine(
  'run verify',
  'Compares all records: every due cycle is charged once, every event is delivered.',
)
  .option('--database-url <url>', 'default: DATABASE_URL, else that of the running npm start')
  .option('--receiver-book <file>', 'received webhooks, one JSON object a line')
  .option('--client-book <file>', 'answers of the API, one JSON object a line')
  .option(
    '--days <count>',
    `number of last days whose charges at ${COMPANIES} are compared`,
    wholeNumber,
    30,
  )
  .option('--json', 'print the result as JSON')
  .addOption(byOption())
  .option('--adopt', 'after a restore: first book what the gateways have, and release held runs')
  .option('--accept <id>', 'first accept every violation that names this record or key, for good')
  .option('--note <text>', 'reason of the acceptance');

await runScript(async () => {
  const options = program.parse().opts<Options>();
  const places = placesOf(options);
  if (!options.json) print(nameOf(places.databaseUrl));
  const adopted = options.adopt ? await adoptInto(places, recorder(options.by)) : null;
  // With --json, stdout has the result only.
  for (const line of adopted?.lines ?? []) {
    (options.json ? console.error : print)(`  ${printable(line)}`);
  }
  if (options.accept !== undefined) await acceptIn(places, options.accept, options);
  const books = await openBooks(places);
  try {
    const results = await checkBooks(books);
    const repairs = await readRepairs(books);
    if (options.json) print(JSON.stringify({ verdicts: results, repairs }, null, 2));
    else {
      results.forEach(printResult);
      printRepairs(repairs);
    }
    return exitCode(results, adopted?.isComplete ?? true);
  } finally {
    await books.close();
  }
});

async function acceptIn(places: Places, subject: string, { note, by }: Options): Promise<void> {
  if (note === undefined) throw new Error('--accept needs --note.');
  const books = await openBooks(places);
  try {
    const wrong = (await checkBooks(books)).flatMap((result) => result.wrong);
    await withDatabase({ url: places.databaseUrl, command: 'accept' }, (db) =>
      accept(db, wrong, { subject, note }, recorder(by)),
    );
  } finally {
    await books.close();
  }
}

type AdoptionPlaces = ReturnType<typeof placesOf>;

/** `isComplete`: false if a repeat is needed, for example because Temporal is away. */
async function adoptInto(
  places: AdoptionPlaces,
  record: Recorder,
): Promise<{ lines: string[]; isComplete: boolean }> {
  const { temporal } = places;
  return withDatabase({ url: places.databaseUrl, command: 'adopt' }, async (db) => {
    const { client, workflows, close } = connectWorkflows(db, temporal);
    const notRechecked = await findNewerRuns(db, workflows);
    const books = await openBooks(places);
    try {
      const lost = await findLost(books);
      const orphans = await findLostRows(db, client, temporal.taskQueuePrefix);
      const { charges, refunds, unnamed, held } = lost;
      // Each record is a transaction of its own. The row is written before the first.
      await record(db, {
        command: 'verify adopt',
        subject: 'database',
        merchantId: null,
        facts: {
          charges: charges.length + unnamed.length,
          refunds: refunds.length,
          heldRuns: held.length,
          lostRows: orphans.lostRows.map(({ subscriptionId }) => subscriptionId),
        },
      });
      const { lines, unreleased } = await adopt({ ...lost, ...orphans }, { db, client, workflows });
      const unread = [...books.unread].map(([name, why]) => `! ${name} was not read: ${why}`);
      lines.push(...foreignLines(orphans));
      const open = [...notRechecked, ...unread, ...unreleased];
      // From now on, a worker charges at a gateway whose charges until now the rows do not have.
      if (open.length === 0) {
        await record(db, { command: ADOPTED, subject: 'database', merchantId: null, facts: {} });
      }
      if (lines.length + open.length === 0) {
        lines.push('The rows have everything that the gateways have.');
      }
      return { lines: [...lines, ...open], isComplete: open.length === 0 };
    } finally {
      await books.close();
      await close();
    }
  });
}

/** Webhook receivers and clients keep no book for us, so an installation without their books is not incomplete. */
function exitCode(results: readonly CheckResult[], isAdoptComplete: boolean): number {
  if (results.some(({ wrong }) => wrong.length > 0)) return 1;
  const isIncomplete = results.some(({ unchecked }) =>
    unchecked.some(({ book }) => book === 'gateway'),
  );
  return isIncomplete || !isAdoptComplete ? 2 : 0;
}

function placesOf(options: Options) {
  const { receiverBook = null, clientBook = null, days, databaseUrl } = options;
  const place = commandPlace(undefined, databaseUrl);
  const { gatewayUrl, gatewayKey, encryptionKeys } = place;
  const stripe = place.doubleUrls.stripe ?? place.stripeDouble?.url;
  return {
    databaseUrl: place.databaseUrl,
    temporal: place,
    gateway:
      gatewayUrl === undefined || gatewayKey === undefined
        ? null
        : { url: gatewayUrl, key: gatewayKey },
    accounts: encryptionKeys && {
      sealing: createSealing(encryptionKeys),
      doubleUrls: { ...place.doubleUrls, stripe },
      days,
    },
    receiverBook,
    clientBook,
  };
}

function nameOf(databaseUrl: string): string {
  const { pathname, host } = new URL(databaseUrl);
  return `Database ${pathname.slice(1)} at ${host}`;
}

/** Repairs are expected after a crash. A count that grows without crashes needs an operator. */
function printRepairs(repairs: readonly Repairs[]): void {
  print(`  Repairs by the sweeps so far: ${repairs.length === 0 ? 'none' : ''}`);
  for (const { kind, repaired, lastAt } of repairs) {
    print(`       ${kind}: ${grouped(repaired)}, last at ${lastAt}`);
  }
}
