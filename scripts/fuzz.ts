// npm run fuzz: Schemathesis against a running npm start: thousands of requests made up from
// /openapi.json, right ones and wrong ones. Fails on any answer the document does not know: a 5xx, an
// undocumented status, a field or a header that is not as described, wrong data that is accepted.
//
// It acts as two merchants of its own. One has the webhook configurations and nothing else, so that no
// event is ever sent to an address that was made up.

import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createDb } from '../db/client.ts';
import { createMerchantWithCredential } from '../db/repositories/merchants.ts';
import { loadOrMakeSecrets } from '../embedded/secrets.ts';
import { loadEmbeddedConfig } from '../runtime/config.ts';
import { createMerchantClient } from '../test/support/merchant-client.ts';
import { findRunningStart } from './client/running-start.ts';
import type { RunningStart } from './client/running-start.ts';
import { grouped, print, runScript, styled } from './client/terminal.ts';
import { countStatuses, neverDone } from './fuzz/calls.ts';
import type { Call } from './fuzz/calls.ts';
import { dictionariesOf } from './fuzz/dictionaries.ts';
import { makeRecords } from './fuzz/records.ts';
import { fuzz, schemathesis } from './fuzz/schemathesis.ts';

/** Fewer say too little. */
const CALLS_MIN = 5_000;
const DEFAULT_SECONDS = 300;
const WEBHOOK_SECONDS = 45;
const WEBHOOK_PATHS = '^/webhook';
const PATIENCE_MS = 30_000;

await runScript(async () => {
  const { values } = parseArgs({
    options: { seconds: { type: 'string', default: String(DEFAULT_SECONDS) } },
  });
  const seconds = Number(values.seconds);
  if (!Number.isInteger(seconds) || seconds < 1) throw new Error('--seconds must be an integer');

  const start = await findRunningStart();
  const python = await schemathesis(loadEmbeddedConfig().cacheDir, (line) => print(`· ${line}`));
  const [payments, webhooks] = await newMerchants(start);
  print('· making records to aim at');
  const { apiUrl } = start.demo;
  const client = createMerchantClient({ apiUrl, ...payments, patienceMs: PATIENCE_MS });
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
  return judge([...first.calls, ...second.calls], [first.exitCode, second.exitCode]);
});

/** Prints what was answered; 0 when nothing was found and enough was asked. */
function judge(calls: readonly Call[], exitCodes: readonly number[]): number {
  print();
  print(`${grouped(calls.length)} requests:`);
  for (const [status, count] of countStatuses(calls)) {
    print(`  ${status === 0 ? '---' : status}  ${grouped(count).padStart(8)}`);
  }
  for (const operation of neverDone(calls)) {
    print(`${styled('yellow', 'only refused')}: ${operation}`);
  }
  const failures = [
    ...(exitCodes.every((code) => code === 0) ? [] : ['Schemathesis found what is listed above']),
    ...(calls.length >= CALLS_MIN ? [] : [`fewer than ${grouped(CALLS_MIN)} requests`]),
    ...(calls.some(({ status }) => status === 0) ? ['requests without an answer'] : []),
    ...(calls.some(({ status }) => status >= 500) ? ['answers of 5xx'] : []),
  ];
  for (const failure of failures) print(`${styled('red', 'failed')}: ${failure}`);
  if (failures.length === 0) print(styled('green', 'Every answer is as the document says.'));
  return failures.length === 0 ? 0 : 1;
}

/** Two merchants nobody knows, so that nothing made up mixes with anything else. */
async function newMerchants({ demo, dataDir }: RunningStart) {
  const { givenSecrets } = loadEmbeddedConfig();
  const pepper =
    givenSecrets.CREDENTIAL_PEPPER ??
    loadOrMakeSecrets(join(dataDir, 'secrets.json')).CREDENTIAL_PEPPER;
  const database = createDb({
    url: demo.databaseUrl,
    poolSize: 1,
    applicationName: 'perennial-fuzz',
  });
  try {
    const create = (name: string) =>
      createMerchantWithCredential(database.db, { name, mode: 'test', pepper });
    return [await create('Fuzz: payments'), await create('Fuzz: webhooks')] as const;
  } finally {
    await database.close();
  }
}
