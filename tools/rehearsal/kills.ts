import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { applyLoad, makeGroups } from '../proof/chaos/load.ts';
import { Payers } from '../proof/chaos/payers.ts';
import { Random } from '../proof/chaos/random.ts';
import { chargedAfter } from '../proof/chaos/report.ts';
import { RetryingClient } from '../proof/chaos/retrying-client.ts';
import { settle } from '../proof/chaos/settle.ts';
import { waitFor } from '../scripts/client/wait-for.ts';
import type { Container } from './composition.ts';
import { secondsSince } from './rehearsal.ts';
import type { Merchant, Rehearsal } from './rehearsal.ts';

const CHARGED_WITHIN_MS = 120_000;
const SUBSCRIPTIONS = 40;
const CLOCKS = 4;

/** Kills each container by SIGKILL while subscriptions renew, and runs a third worker. */
export async function killEach(rehearsal: Rehearsal, merchant: Merchant): Promise<void> {
  const { containers, folder, machine, say } = rehearsal;
  const sql = rehearsal.sql('perennial');
  const bookFile = join(folder, 'answers.jsonl');
  writeFileSync(bookFile, '');
  const client = new RetryingClient({ ...merchant, bookFile });
  const counts = { made: 0, paid: 0, tooLate: 0, commands: 0, refunds: 0 };
  const payers = new Payers(new Random(2), 'sandbox');
  const load = { client, random: new Random(1), payers, ...counts };
  const groups = await makeGroups(load, SUBSCRIPTIONS, CLOCKS);
  say(`${load.paid} subscriptions are paid; they now renew on ${CLOCKS} test clocks`);
  const enough = new AbortController();
  const renewing = Promise.all(groups.map((group) => applyLoad(load, group, enough.signal)));
  // A failure is thrown at the end.
  renewing.catch(() => undefined);
  const kill = async (container: Container): Promise<void> => {
    const [killedAt, from] = [Date.now(), performance.now()];
    await machine.kill(container);
    const back = secondsSince(from);
    const find = async () => (await chargedAfter(sql, killedAt).catch(() => null)) ?? undefined;
    const chargedAt = await waitFor(`a charge after ${container.name}`, CHARGED_WITHIN_MS, find);
    const seconds = ((chargedAt - killedAt) / 1_000).toFixed(1);
    say(`SIGKILL of ${container.name}: back after ${back} s, a charge settled after ${seconds} s`);
  };
  for (const container of containers) await kill(container);
  await rehearsal.up('worker', { replicas: 3 });
  for (const one of containers) if (one.name.startsWith('worker')) await kill(one);
  const open = await sql<{ role: string; count: number }[]>`
    select usename as role, count(*)::int from pg_stat_activity
    where usename in ('perennial', 'temporal') group by 1 order by 1`;
  say(`connections: ${open.map(({ role, count }) => `${role} ${count}`).join(', ')}`);
  const memory = containers.map(
    ({ name, service }) => `${name} ${machine.memoryOf(name)} MB of ${service.mem_limit}`,
  );
  say(`memory: ${memory.join(', ')}`);
  enough.abort();
  await renewing;
  await settle(sql);
  const [paid] = await sql<{ count: number }[]>`
    select count(*)::int from payment_attempt where state = 'SUCCEEDED'`;
  say(`${paid?.count} charges were paid`);
  await rehearsal.expectRight();
}
