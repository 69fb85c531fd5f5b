import { execFileSync } from 'node:child_process';
import type { RunningStart } from '../../scripts/client/running-start.ts';
import { loadOrMakeSecrets } from '../../embedded/secrets.ts';
import { secretsFile } from '../../../cli/command-line/start-secrets.ts';
import { createSealing, keyRingOf } from '../../../runtime/sealing.ts';
import { openBooks } from '../../../cli/verify/books.ts';
import { checkBooks } from '../../../cli/verify/invariants.ts';
import type { CheckResult } from '../../../cli/verify/invariants.ts';
import { messageOf } from '../../../cli/command-line/terminal.ts';
import { countCycles, figuresOf, repairsOf } from './figures.ts';
import { runFaultPhase, UP_WITHIN_MS } from './fault-phase.ts';
import { advance } from './load.ts';
import type { Group } from './load.ts';
import { coresSince, coreTime } from './machine.ts';
import { recoveries } from './report.ts';
import type { RunReport } from './report.ts';
import { settle } from './settle.ts';
import { prepare } from './surroundings.ts';
import type { RunOptions, Surroundings } from './surroundings.ts';

export async function run(
  start: RunningStart,
  options: RunOptions,
  folder: string,
): Promise<RunReport> {
  const surroundings = await prepare(start, options, folder);
  try {
    return await reportOf(surroundings);
  } finally {
    await surroundings.close();
  }
}

async function reportOf(surroundings: Surroundings): Promise<RunReport> {
  const { options, startedAt, sql, load, killer, receiver } = surroundings;
  const coresBefore = coreTime();
  const { groups, faults, outage, soaked } = await runFaultPhase(surroundings);
  const faultPhaseSeconds = (Date.now() - startedAt) / 1_000;
  const cores = coresSince(coresBefore);
  const { wrong, repairs } = await recover(surroundings, groups);
  const results = await verifyBooks(surroundings);
  const paid = await countCycles(sql);
  if (options.soak === undefined && paid < options.cycles)
    wrong.push(`only ${paid} of ${options.cycles} cycles were paid`);
  if (killer.kills.length === 0) wrong.push('no process was killed');
  wrong.push(...results.flatMap(({ forPerson }) => forPerson));
  wrong.push(...results.flatMap(({ unchecked }) => unchecked.map(({ reason }) => reason)));
  return {
    commit: commitOf(),
    command: commandOf(options),
    startedAt,
    seconds: (Date.now() - startedAt) / 1_000,
    cyclesPaid: paid,
    figures: [
      ...(await figuresOf(sql, load, receiver.received(), repairs)),
      ...outage,
      ...faults,
      ...soaked,
      ['time with faults and kills', `${faultPhaseSeconds.toFixed(0)} s`],
      ['CPU cores', cores],
    ],
    recovery: await recoveries(sql, killer.kills),
    kills: killer.kills.length,
    results,
    wrong,
  };
}

/** Ends the receiver's faults, advances every test clock by up to 7 days, and waits until no work is open. */
async function recover(
  { sql, load, killer, receiver }: Surroundings,
  groups: readonly Group[],
): Promise<{ wrong: string[]; repairs: string }> {
  await killer.waitUntilUp(AbortSignal.timeout(UP_WITHIN_MS));
  receiver.recover();
  await Promise.all(groups.map((group) => advance(load, group, 7)));
  // The counts are read before `settle`: `settle` makes deliveries due early, and sweeps count these as
  // repairs.
  const repairs = await repairsOf(sql);
  const wrong: string[] = [];
  await settle(sql).catch((error: unknown) => wrong.push(messageOf(error)));
  return { wrong: [...wrong, ...load.client.unanswered], repairs };
}

async function verifyBooks({ start, receiver, books }: Surroundings): Promise<CheckResult[]> {
  const { demo, dataDir } = start;
  receiver.writeBook(books.receiverBook);
  const opened = await openBooks({
    databaseUrl: demo.databaseUrl,
    gateway: { url: demo.gatewayUrl, key: demo.gatewayKey },
    accounts: demo.stripeDouble && {
      sealing: createSealing(keyRingOf(loadOrMakeSecrets(secretsFile(dataDir)).ENCRYPTION_KEY)),
      doubleUrls: { stripe: demo.stripeDouble.url },
      days: 1,
    },
    ...books,
  });
  try {
    return await checkBooks(opened);
  } finally {
    await opened.close();
  }
}

function commandOf(options: RunOptions): string {
  const { gateway, temporal, cycles, subscriptions, seed, pause, temporalAway, soak } = options;
  const away = temporalAway === undefined ? '' : ` --temporal-away ${temporalAway}`;
  const length = soak === undefined ? `--cycles ${cycles} --pause ${pause}` : `--soak ${soak}`;
  const size = `--subscriptions ${subscriptions} --seed ${seed}`;
  const name =
    (gateway === 'sandbox' ? '' : `--gateway ${gateway} `) +
    (temporal === 'cluster' ? '' : `--temporal ${temporal} `);
  return `npm run chaos -- ${name}${length} ${size}${away}`;
}

function commitOf(): string {
  return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
}
