import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, PerennialError } from '../../client/index.ts';
import type { Client } from '../../client/index.ts';
import { subscribe } from '../scripts/client/monthly.ts';
import { waitFor } from '../scripts/client/wait-for.ts';
import { BOOK } from './rehearsal.ts';
import type { Merchant, Rehearsal } from './rehearsal.ts';

const SUBSCRIPTIONS = 10;
const RENEWED = 6;
const DUE_AFTER_MS = 90_000;
/** The changed dates of the commands that are lost, which then renew, and of their repeats, which do not. */
const SOON_MS = 5_000;
const LATER_MS = 30 * 86_400_000;
const RENEWED_WITHIN_MS = 240_000;
const ADOPTIONS_MAX = 10;
/** Time in ms for the sweeps to repair what they find, before the records are compared. */
const REPAIRED_AFTER_MS = 90_000;

/**
 * Restores the product, then Temporal, then both by the commands of docs/operations.md, to an instant before renewals. The
 * gateway must make no charge again.
 */
export async function restoreDrills(rehearsal: Rehearsal, merchant: Merchant): Promise<void> {
  const { say } = rehearsal;
  const superuser = rehearsal.sql('postgres');
  const book = rehearsal.sql('perennial', BOOK);
  const keys = async (): Promise<string[]> => {
    const rows = await book<{ key: string }[]>`
      select key from sandbox_gateway.charge where outcome = 'succeeded' order by key`;
    return rows.map(({ key }) => key);
  };
  const client = createClient(merchant);
  const stop = (...names: string[]) => rehearsal.stop(...names);
  const start = async (...names: string[]): Promise<void> => {
    for (const name of names) await rehearsal.up(name);
  };
  const copy = async (from: string, to: string): Promise<void> => {
    const owner = from.includes('temporal') ? 'temporal' : 'perennial';
    await superuser`select pg_terminate_backend(pid) from pg_stat_activity where datname in (${from}, ${to})`;
    await superuser.unsafe(`drop database if exists ${to}`);
    await superuser.unsafe(`create database ${to} template ${from} owner ${owner}`);
  };
  const expectSame = async (before: readonly string[], drill: string): Promise<void> => {
    const after = await keys();
    say(`the gateway's book: ${before.length} charges before, ${after.length} after ${drill}`);
    if (before.join() !== after.join()) throw new Error(`${drill} changed the gateway's book`);
  };

  const ids: string[] = [];
  for (let n = 0; n < SUBSCRIPTIONS; n += 1) ids.push(await subscribe(client));
  const newNextPaymentDate = Date.now() + DUE_AFTER_MS;
  for (const subscriptionId of ids.slice(0, RENEWED)) {
    await client.editSubscription({ body: { subscriptionId, newNextPaymentDate } });
  }
  await client.pauseSubscription({ body: { subscriptionId: ids[6] ?? '' } });
  const readBefore = await readOn(client);
  await rehearsal.follow('Backups', 0);
  await stop('api', 'worker', 'temporal');
  for (const name of ['perennial', 'temporal', 'temporal_visibility']) {
    await copy(name, `backup_${name}`);
  }
  const backupAt = new Date().toISOString();
  say(`backup: ${SUBSCRIPTIONS} subscriptions are paid, ${RENEWED} of them renew soon`);
  await start('temporal', 'api', 'worker');
  const edit = (dueAfterMs: number) => editAll(client, ids, dueAfterMs);
  await edit(SOON_MS);
  const charge = { subscriptionId: ids[9] ?? '', amount: 500, currency: 'USD' };
  await client.chargeSubscriptionOnce({ body: charge });
  await subscribe(client);
  const charges = SUBSCRIPTIONS + RENEWED + 4;
  const renewed = async () => ((await keys()).length === charges ? true : undefined);
  await waitFor('the renewals', RENEWED_WITHIN_MS, renewed);
  say(
    'after it: the renewals, one with a new amount, one on a new date, and one after an unpause;',
  );
  say('a pause, a one-time charge and a new subscription');
  const before = await keys();
  const readBeyond = await readOn(client, readBefore);

  await stop('api', 'worker');
  await copy('perennial', 'newest');
  await copy('backup_perennial', 'perennial');
  say('the product is restored, Temporal is not; as docs/operations.md says:');
  await recover(rehearsal, () => edit(LATER_MS));
  await expectSame(before, 'the restore of the product');
  await expectRefused(client, readBeyond);
  await readOn(client, readBefore);

  await stop('api', 'worker', 'temporal');
  await copy('newest', 'perennial');
  for (const name of ['temporal', 'temporal_visibility']) await copy(`backup_${name}`, name);
  say('Temporal is restored, the product is not:');
  await start('temporal', 'api', 'worker');
  await sleep(REPAIRED_AFTER_MS);
  await expectSame(before, 'the restore of Temporal');
  await readOn(client, readBeyond);
  await rehearsal.expectRight();
  await rehearsal.follow('Backups', 1, { TIME: backupAt });
  say(`both are restored to ${backupAt}:`);
  await recover(rehearsal, () => edit(LATER_MS));
  await expectSame(before, 'the restore of both');
  await expectRefused(client, readBeyond);
  await readOn(client, readBefore);
}

/** Reads the feed from a cursor, or from its oldest event, to its end. Returns the cursor there. */
async function readOn(client: Client, after?: string): Promise<string> {
  let end = after ?? '';
  const query = { wait: 0, ...(after !== undefined && { after }) };
  for await (const page of client.feed(query)) end = page.after;
  return end;
}

/** Throws if a reader goes on that has read events which the restore lost. */
async function expectRefused(client: Client, after: string): Promise<void> {
  const refusal = await readOn(client, after).catch((error: unknown) => error);
  if (refusal instanceof PerennialError && refusal.errorCode === 'cursor_expired') return;
  throw new Error('a reader of the feed was not told that events were lost');
}

/** The commands that a restore loses, and that are repeated after it: the dates then are far away. */
async function editAll(client: Client, ids: readonly string[], dueAfterMs: number) {
  const newNextPaymentDate = Date.now() + dueAfterMs;
  const at = (index: number) => ({ subscriptionId: ids[index] ?? '' });
  await client.editSubscription({ body: { ...at(0), newAmount: 2_499 } });
  await client.editSubscription({ body: { ...at(7), newNextPaymentDate } });
  await client.unpauseSubscription({ body: { ...at(6), newNextPaymentDate } });
  await client.pauseSubscription({ body: at(8) });
}

/**
 * Books what the gateways have, starts workers and API, repeats the lost commands, and accepts what cannot be booked, as
 * docs/operations.md says. Then the records agree.
 */
async function recover(rehearsal: Rehearsal, repeat: () => Promise<void>): Promise<void> {
  const unbooked = new Set<string>();
  /** True if a record was booked or a run released, so that a repeat may find more. */
  const adopt = async (): Promise<boolean> => {
    const told = (await rehearsal.verify('--adopt')).filter((line) => /^ {2}[+!]/.test(line));
    for (const line of told) {
      rehearsal.say(line);
      const [, key] = /^ {2}! (charge:\S+): not booked/.exec(line) ?? [];
      if (key !== undefined) unbooked.add(key);
    }
    return told.some((line) => line.startsWith('  +'));
  };
  await adopt();
  await rehearsal.up('worker');
  for (let n = 0, mayFindMore = true; n < ADOPTIONS_MAX && mayFindMore; n += 1) {
    mayFindMore = await adopt();
  }
  await rehearsal.up('api');
  await repeat();
  await sleep(REPAIRED_AFTER_MS);
  for (const key of unbooked) {
    const accept = ['--accept', key, '--note', 'refunded at the gateway'];
    rehearsal.say(`ops verify.ts ${accept.join(' ')}`);
    await rehearsal.verify(...accept);
  }
  await rehearsal.expectRight();
}
