// npm run fuzz: Schemathesis generates valid and invalid requests from /openapi.json. The run fails on every answer that
// the document does not allow: a 5xx, an undocumented status, a wrong field or header, or invalid data that is accepted.
//
// With `crashes`: random lives of subscriptions whose workers crash, on a Postgres of its own.
//
// The requests use two merchants made for this run. Only one merchant gets webhook configurations, and
// this merchant has no subscriptions or payments. So no event is ever sent to a generated address.

import { createMerchantWithCredential } from '../../db/repositories/merchants/merchants.ts';
import { loadOrMakeSecrets } from '../embedded/secrets.ts';
import { secretsFile } from '../../cli/command-line/start-secrets.ts';
import { loadEmbeddedConfig } from '../config.ts';
import { listOf } from '../../runtime/environment.ts';
import { createClient } from '../../client/index.ts';
import { findRunningStart } from './client/running-start.ts';
import type { RunningStart } from './client/running-start.ts';
import { withDatabase } from '../../cli/command-line/servers.ts';
import { grouped, print, runScript, styled } from '../../cli/command-line/terminal.ts';
import { countStatuses, neverSucceeded } from '../proof/fuzz/calls.ts';
import type { Call } from '../proof/fuzz/calls.ts';
import { runCrashes } from '../proof/fuzz/crashes/command.ts';
import type { CrashOptions } from '../proof/fuzz/crashes/command.ts';
import { dictionariesOf } from '../proof/fuzz/dictionaries.ts';
import { makeRecords } from '../proof/fuzz/records.ts';
import { fuzz, schemathesis } from '../proof/fuzz/schemathesis.ts';
import { commandLine, gatewayOption, wholeNumber } from '../../cli/command-line/options.ts';

/** A run with fewer requests fails, because it proves too little. */
const CALLS_MIN = 5_000;
const DEFAULT_SECONDS = 300;
const DEFAULT_LIVES = 2_000;
const WEBHOOK_SECONDS = 45;
const WEBHOOK_PATHS = '^/webhook';

let exitCode = 0;
const program = commandLine(
  'run fuzz',
  'Sends generated requests to a running npm start, and checks every answer.',
)
  .option('--seconds <count>', 'length of the first part', wholeNumber, DEFAULT_SECONDS)
  .action(async ({ seconds }: { seconds: number }) => {
    exitCode = await fuzzApi(seconds);
  });
program
  .command('crashes')
  .description('Lives random lives of subscriptions whose workers crash, and compares all records.')
  .option('--lives <count>', 'number of subscriptions', wholeNumber, DEFAULT_LIVES)
  .option('--seed <number>', 'decides the lives', wholeNumber, 1)
  .addOption(gatewayOption('the gateway that takes the payments').default('sandbox'))
  .action(async (options: CrashOptions) => {
    exitCode = await runCrashes(options);
  });

await runScript(async () => {
  await program.parseAsync();
  return exitCode;
});

async function fuzzApi(seconds: number): Promise<number> {
  const start = await findRunningStart();
  const python = await schemathesis(loadEmbeddedConfig().cacheDir, (line) => print(`· ${line}`));
  const [payments, webhooks] = await newMerchants(start);
  print('· creating records for the requests');
  const { apiUrl } = start.demo;
  const client = createClient({ apiUrl, ...payments });
  const dictionaries = dictionariesOf(await makeRecords(start, client));

  const shared = { python, documentUrl: `${apiUrl}/openapi.json` };
  const first = await fuzz({
    ...shared,
    credential: payments,
    seconds,
    select: ['--exclude-path-regex', WEBHOOK_PATHS],
    dictionaries,
  });
  const second = await fuzz({
    ...shared,
    credential: webhooks,
    seconds: WEBHOOK_SECONDS,
    select: ['--include-path-regex', WEBHOOK_PATHS],
    dictionaries: '',
  });
  return reportResult([...first.calls, ...second.calls], [first.exitCode, second.exitCode]);
}

function reportResult(calls: readonly Call[], exitCodes: readonly number[]): number {
  print();
  print(`${grouped(calls.length)} requests:`);
  for (const [status, count] of countStatuses(calls)) {
    print(`  ${status === 0 ? '---' : status}  ${grouped(count).padStart(8)}`);
  }
  for (const operation of neverSucceeded(calls)) {
    print(`${styled('yellow', 'never succeeded')}: ${operation}`);
  }
  const failures = [
    ...(exitCodes.every((code) => code === 0) ? [] : ['Schemathesis reported the failures above']),
    ...(calls.length >= CALLS_MIN ? [] : [`fewer than ${grouped(CALLS_MIN)} requests`]),
    ...(calls.some(({ status }) => status === 0) ? ['requests without an answer'] : []),
    ...(calls.some(({ status }) => status >= 500) ? ['5xx answers'] : []),
  ];
  for (const failure of failures) print(`${styled('red', 'failed')}: ${failure}`);
  if (failures.length === 0) print(styled('green', 'Every answer matches the document.'));
  return failures.length === 0 ? 0 : 1;
}

async function newMerchants({ demo, dataDir }: RunningStart) {
  const { givenSecrets } = loadEmbeddedConfig();
  const { CREDENTIAL_PEPPER } = { ...loadOrMakeSecrets(secretsFile(dataDir)), ...givenSecrets };
  const [pepper = ''] = listOf(CREDENTIAL_PEPPER);
  return withDatabase({ url: demo.databaseUrl, command: 'fuzz' }, async (db) => {
    const create = (name: string) =>
      createMerchantWithCredential(db, { name, mode: 'test', pepper });
    return [await create('Fuzz: payments'), await create('Fuzz: webhooks')] as const;
  });
}
