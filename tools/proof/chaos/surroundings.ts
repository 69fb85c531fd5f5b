import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { answers } from '../../embedded/control.ts';
import type { RunningStart } from '../../scripts/client/running-start.ts';
import { controlDouble } from '../../scripts/client/double-control.ts';
import { NOTICE_TYPES } from '../../../domain/events.ts';
import type { NoticeRules } from '../../../domain/notice-rules.ts';
import type { GatewayChoice } from '../../../cli/command-line/options.ts';
import { sandboxFaults } from './gateway-faults.ts';
import { stripeFaults } from './stripe-faults.ts';
import { createClient } from '../../../client/index.ts';
import { RetryingClient } from './retrying-client.ts';
import { Killer } from './killer.ts';
import { SOAK, startSoak } from './soak.ts';
import type { Load } from './load.ts';
import { Random } from './random.ts';
import { Payers } from './payers.ts';
import { PaidCycles } from './refunds.ts';
import { chargedAfter } from './report.ts';
import { startUnreliableReceiver } from './unreliable-receiver.ts';

export interface RunOptions {
  readonly gateway: GatewayChoice;
  readonly temporal: 'cluster' | 'dev';
  readonly cycles: number;
  readonly subscriptions: number;
  readonly seed: number;
  readonly minutes: number;
  /** Minutes at 60 % of the machine, in place of a number of cycles. */
  readonly soak?: number;
  /** Of the API. That of the worker follows. */
  readonly metricsPort: number;
  /** Longest time in seconds between recovery and the next kill. */
  readonly pause: number;
  readonly temporalAway?: number;
}

/** Short cycles have notices, too. In real time, an edit that raises the amount causes one at once. */
const NOTICES: NoticeRules = NOTICE_TYPES.map((notice) => ({
  notice,
  cycleDays: 0,
  daysBefore: [2, 1],
}));

/** The shortest delay of a retry plan: in real time, too, some automatic retries fall into the run. */
const FIRST_RETRY_AFTER_MS = 60_000;

export type Surroundings = Awaited<ReturnType<typeof prepare>>;

export async function prepare(start: RunningStart, options: RunOptions, folder: string) {
  const { demo } = start;
  const sql = postgres(demo.databaseUrl, { max: 2, onnotice: () => undefined });
  await sql`update merchant set settings =
    jsonb_set(settings, '{retryPlan,delaysMs,0}', ${FIRST_RETRY_AFTER_MS}::text::jsonb)
    || ${JSON.stringify({ notices: NOTICES })}::text::jsonb`;
  const books = {
    clientBook: join(folder, 'answers.jsonl'),
    receiverBook: join(folder, 'webhooks.jsonl'),
  };
  writeFileSync(books.clientBook, '');
  const soak =
    options.soak === undefined
      ? null
      : startSoak(start.dataDir, options.metricsPort, sql, options.soak);
  const load: Load = {
    client: new RetryingClient({ ...demo, bookFile: books.clientBook }),
    random: new Random(options.seed),
    payers: new Payers(new Random(options.seed + 5), options.gateway),
    ...(soak && { turn: soak.turn }),
    made: 0,
    paid: 0,
    tooLate: 0,
    commands: 0,
    refunds: 0,
  };
  const system = {
    isServing: () => answers(`${demo.apiUrl}/health`),
    hasChargedSince: (at: number) =>
      chargedAfter(sql, at).then(
        (chargedAt) => chargedAt !== null,
        // The database may be down at this moment.
        () => false,
      ),
  };
  const double = options.gateway === 'stripe-double' ? controlDouble(demo) : null;
  const gatewayFaults =
    double === null
      ? sandboxFaults(start)
      : stripeFaults(double, new Random(options.seed + 3), await demoMerchantId(sql));
  const random = new Random(options.seed + 1);
  const pause = soak ? SOAK.pauseSeconds : options.pause;
  const killer = new Killer(start.dataDir, random, system, pause * 1_000);
  const paidCycles = new PaidCycles(new Random(options.seed + 4));
  const receiver = await startUnreliableReceiver(
    createClient(demo),
    new Random(options.seed + 2),
    soak ? SOAK.receiver : { fails: 0.2, drops: 0.1 },
    (event) => paidCycles.hear(event),
  );
  return {
    options,
    startedAt: Date.now(),
    start,
    sql,
    load,
    killer,
    receiver,
    paidCycles,
    gatewayFaults,
    books,
    soak,
    async close(): Promise<void> {
      soak?.stop();
      await receiver.close();
      await sql.end({ timeout: 5 });
    },
  };
}

async function demoMerchantId(sql: postgres.Sql): Promise<string> {
  const [row] = await sql<{ id: string }[]>`select id from merchant`;
  if (row === undefined) throw new Error('there is no merchant');
  return row.id;
}
