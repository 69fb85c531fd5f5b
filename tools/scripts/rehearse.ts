// npm run rehearse: starts every service of docker-compose.yml as a process of this machine, with the service's
// command, variables, health check and order; no container is started. Then kills each of them while subscriptions
// renew, runs three workers and the demo, and verifies all records. Exits with 1 if anything differs.

import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { loadEmbeddedConfig } from '../config.ts';
import { runCommand } from '../embedded/commands.ts';
import { writeDemoFile } from '../embedded/demo-file.ts';
import { loadOrMakeSecrets } from '../embedded/secrets.ts';
import { temporalCli } from '../embedded/temporal-cli.ts';
import { temporalClusterPrograms } from '../embedded/temporal-cluster.ts';
import { applyLoad, makeGroups } from '../proof/chaos/load.ts';
import { Random } from '../proof/chaos/random.ts';
import { chargedAfter } from '../proof/chaos/report.ts';
import { RetryingClient } from '../proof/chaos/retrying-client.ts';
import { settle } from '../proof/chaos/settle.ts';
import { containerOf, inOrder, readComposition } from '../rehearsal/composition.ts';
import type { Container } from '../rehearsal/composition.ts';
import { buildImage, createMachine, linkPrograms } from '../rehearsal/machine.ts';
import { restoreDrills } from '../rehearsal/restore.ts';
import { commandLine } from './client/options.ts';
import { print, runScript } from './client/terminal.ts';
import { waitFor } from './client/wait-for.ts';

const CHARGED_WITHIN_MS = 120_000;
const DEMO_WITHIN_MS = 300_000;
const SUBSCRIPTIONS = 40;
const CLOCKS = 4;
const JOBS = ['temporal-schema', 'temporal-namespace', 'migrate'];

const { restore: isRestore } = commandLine(
  'run rehearse',
  'Starts the services of docker-compose.yml without containers.',
)
  .option('--restore', 'restore the product and then Temporal to a backup, in place of the kills')
  .parse()
  .opts<{ restore?: true }>();

const startedAt = performance.now();
const secondsSince = (from: number): string => ((performance.now() - from) / 1_000).toFixed(1);
const say = (line: string): void => print(`${secondsSince(startedAt).padStart(7)} s  ${line}`);

await runScript(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'perennial-rehearsal-'));
  // Postgres may run as another account.
  chmodSync(folder, 0o755);
  const programs = join(folder, 'bin');
  mkdirSync(programs);
  const config = loadEmbeddedConfig();
  const { server, sqlTool } = await temporalClusterPrograms(config, say);
  linkPrograms(programs, {
    'temporal-server': server,
    'temporal-sql-tool': sqlTool,
    temporal: await temporalCli(config, say),
    node: process.execPath,
  });
  const machine = createMachine(folder, programs);
  process.once('SIGINT', () => void machine.stopAll().then(() => process.exit(130)));
  try {
    const stage = await startAll(folder, machine);
    const kept = { ...stage, folder, machine };
    if (isRestore) {
      const { verifyWith: verify } = stage;
      await restoreDrills({ ...stage, verify, say, stop: (name) => machine.stop(name) });
    } else {
      await killEach(kept);
      await playDemo(kept);
    }
    await stage.superuser.end();
    const from = performance.now();
    await machine.stopAll();
    say(`docker compose down: all stopped after ${secondsSince(from)} s`);
    rmSync(folder, { recursive: true });
    return 0;
  } catch (error) {
    print(`logs are in ${folder}`);
    throw error;
  } finally {
    await machine.stopAll();
  }
});

type Machine = ReturnType<typeof createMachine>;
type Stage = Awaited<ReturnType<typeof startAll>> & { folder: string; machine: Machine };

async function startAll(folder: string, machine: Machine) {
  const secrets = loadOrMakeSecrets(join(folder, 'secrets.json'));
  const services = readComposition({
    ...secrets,
    POSTGRES_PASSWORD: secrets.postgresPassword,
    PERENNIAL_DB_PASSWORD: randomBytes(16).toString('hex'),
    TEMPORAL_DB_PASSWORD: randomBytes(16).toString('hex'),
    // The payers of the load send their addresses, as a proxy does.
    TRUSTED_PROXIES: '1',
  });
  const image = await buildImage(join(folder, 'app'));
  const make = (name: string, replica?: number): Container => {
    const container = containerOf(services, image, name, replica);
    if (name !== 'sandbox-gateway') return container;
    // The gateway's book has its own database, as a real gateway's has.
    const { environment } = container;
    return { ...container, environment: { ...environment, DATABASE_URL: bookUrlOf(environment) } };
  };
  const given = make('ops').environment;
  const { PUBLIC_URL: apiUrl = '', DATABASE_URL: databaseUrl = '' } = given;
  const adminUrl = new URL(databaseUrl);
  const { postgresPassword: password } = secrets;
  Object.assign(adminUrl, { username: 'postgres', password, pathname: '/postgres' });
  const superuser = postgres(adminUrl.href, { max: 1, onnotice: () => undefined });
  const containers: Container[] = [];
  const up = async (container: Container): Promise<void> => {
    const from = performance.now();
    await machine.start(container);
    const state = container.healthcheck.length > 0 ? 'is healthy' : 'has started';
    say(`${container.name} ${state} after ${secondsSince(from)} s`);
  };
  const add = async (name: string, replica?: number): Promise<void> => {
    containers.push(make(name, replica));
    await up(make(name, replica));
  };
  const job = async (name: string): Promise<void> => {
    await machine.run(make(name));
    say(`${name} has completed`);
  };
  for (const name of inOrder(services)) {
    if (name === 'temporal-ui') say('temporal-ui is not rehearsed: its image is not built here');
    else await (JOBS.includes(name) ? job : add)(name);
    if (name === 'postgres') await superuser`create database gateway_book owner perennial`;
  }
  say('as docker compose up does the second time, each job runs again:');
  for (const name of JOBS) await job(name);
  await add('worker', 2);
  const ops = (...args: string[]): Promise<string> =>
    machine.run({ ...make('ops'), command: [...(services['ops']?.entrypoint ?? []), ...args] });
  const created = await ops('merchant.ts', '--json', 'create', '--name', 'Tea club');
  const { keyId, secret } = JSON.parse(created) as { keyId: string; secret: string };
  say(`ops merchant.ts create: ${keyId}`);
  const verify = async (): Promise<void> => {
    const lines = (await ops('verify.ts')).split('\n').filter((line) => line.includes('✓'));
    say(`ops verify.ts: ${lines.length} invariants hold`);
  };
  /** The whole output, also if the command ends with another code than 0. */
  const verifyWith = (...options: string[]): Promise<string> => {
    const command = [...(services['ops']?.entrypoint ?? []), 'verify.ts', ...options];
    return machine.run({ ...make('ops'), command: ['sh', '-c', '"$0" "$@" || :', ...command] });
  };
  return {
    containers,
    up,
    add,
    verify,
    verifyWith,
    superuser,
    bookUrl: bookUrlOf(given),
    given,
    secrets,
    demo: { apiUrl, keyId, secret, databaseUrl },
  };
}

function bookUrlOf({ DATABASE_URL: url = '' }: Readonly<Record<string, string>>): string {
  return new URL('/gateway_book', url).href;
}

async function killEach({ containers, add, verify, superuser, demo, folder, machine }: Stage) {
  const sql = postgres(demo.databaseUrl, { max: 1, onnotice: () => undefined });
  const bookFile = join(folder, 'answers.jsonl');
  writeFileSync(bookFile, '');
  const client = new RetryingClient({ ...demo, bookFile });
  const counts = { made: 0, paid: 0, tooLate: 0, pagesRepeated: 0, commands: 0, refunds: 0 };
  const load = { client, random: new Random(1), ...counts };
  const groups = await makeGroups(load, SUBSCRIPTIONS, CLOCKS);
  say(`${load.paid} subscriptions are paid; they now renew on ${CLOCKS} test clocks`);
  const enough = new AbortController();
  const renewing = Promise.all(groups.map((group) => applyLoad(load, group, enough.signal)));
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
  await add('worker', 3);
  for (const one of containers) if (one.name.startsWith('worker')) await kill(one);
  const open = await superuser<{ role: string; count: number }[]>`
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
  await verify();
  await sql.end();
}

async function playDemo({ containers, up, verify, given, secrets, demo, folder, machine }: Stage) {
  say('for the webhooks of the demo, with NODE_ENV=test and WEBHOOK_ALLOW_LOOPBACK=true:');
  const loopback = { NODE_ENV: 'test', WEBHOOK_ALLOW_LOOPBACK: 'true' };
  for (const container of containers.filter(({ name }) => /^(api|worker)/.test(name))) {
    await machine.stop(container.name);
    await up({ ...container, environment: { ...container.environment, ...loopback } });
  }
  writeDemoFile(folder, {
    ...demo,
    checkoutUrl: demo.apiUrl,
    gatewayUrl: given['GATEWAY_URL'] ?? '',
    gatewayKey: secrets.GATEWAY_KEY,
    temporalUiUrl: demo.apiUrl,
    temporalAddress: given['TEMPORAL_ADDRESS'] ?? '',
    temporalNamespace: given['TEMPORAL_NAMESPACE'] ?? '',
  });
  await runCommand(process.execPath, ['--import', 'tsx', 'tools/scripts/demo.ts'], {
    timeoutMs: DEMO_WITHIN_MS,
    cwd: process.cwd(),
    environment: { DATA_DIR: folder },
  });
  say('npm run demo: everything is as expected');
  await verify();
}
