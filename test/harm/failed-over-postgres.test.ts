import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { expect } from 'vitest';
import { migrate } from '../../db/migrate.ts';
import { freePort } from '../../tools/embedded/ports.ts';
import { ensureDatabase, postgresService, postgresUrl } from '../../tools/embedded/postgres.ts';
import { supervise } from '../../tools/embedded/services.ts';
import { onDevServer } from '../support/environment.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { openShop } from '../support/shop.ts';
import { createEnvironment } from '../support/test-environment.ts';

/**
 * Postgres fails over behind a proxy. The primary restarts as a read-only standby, and the proxy still leads to
 * it. Then the replica is promoted, and the proxy leads new connections there. The proxy ends no session on the
 * old server.
 */

const TEMPLATE_DATABASE = 'perennial_template';
const READ_ONLY = 'database error 25006';
/** More writes than the API's pool has connections, so that every connection gets one. */
const WRITES = 30;
const CREATED_AT = Date.parse('2027-01-10T00:00:00Z');
const BELOW_RATE_LIMIT = { timeout: 60_000, interval: 500 };

/** The primary, its replica, and a proxy whose new connections lead to one of them. */
async function startServers() {
  const folder = mkdtempSync(join(tmpdir(), 'perennial-failed-over-postgres-'));
  const place = async (name: string) => ({
    dataFolder: join(folder, name),
    logFile: join(folder, `${name}.log`),
    port: await freePort(),
    password: 'test',
    isDurable: true,
  });
  const [first, second] = [await place('first'), await place('second')];
  const serverAt = (settings: typeof first) =>
    supervise(
      postgresService(settings, () => undefined),
      { report: () => undefined },
    );
  const becomeStandby = ({ dataFolder }: typeof first) =>
    writeFileSync(join(dataFolder, 'standby.signal'), '');

  const primary = serverAt(first);
  await primary.start();
  await ensureDatabase(postgresUrl(first, TEMPLATE_DATABASE));
  await migrate(postgresUrl(first, TEMPLATE_DATABASE), {
    applicationName: 'test-servers',
    report: () => undefined,
  });
  await primary.stop();
  // Postgres refuses a folder of another account.
  execFileSync('cp', ['-a', first.dataFolder, second.dataFolder]);
  becomeStandby(second);
  appendFileSync(
    join(second.dataFolder, 'postgresql.auto.conf'),
    `primary_conninfo = 'host=127.0.0.1 port=${first.port} user=postgres password=test'\n`,
  );
  const running = [serverAt(first), serverAt(second)];
  for (const server of running) await server.start();

  let target = first;
  const proxy = createServer((from) => {
    const to = connect(target.port, '127.0.0.1');
    for (const [socket, other] of [
      [from, to],
      [to, from],
    ] as const) {
      socket.on('error', () => other.destroy());
      socket.on('close', () => other.destroy());
      socket.pipe(other);
    }
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const { port } = proxy.address() as AddressInfo;

  const ask = async (settings: typeof first, statement: string) => {
    const sql = postgres(postgresUrl(settings, 'postgres'), { max: 1 });
    try {
      return await sql.unsafe(statement);
    } finally {
      await sql.end({ timeout: 1 });
    }
  };
  return {
    url: postgresUrl({ ...first, port }, 'postgres'),
    /** The primary restarts as a standby, after it has sent everything to its replica. */
    demote: async () => {
      await running[0]?.stop();
      becomeStandby(first);
      running[0] = serverAt(first);
      await running[0].start();
    },
    /** The replica becomes the primary, and new connections lead to it. */
    promote: async () => {
      await ask(second, 'select pg_promote()');
      target = second;
      // The gateway is another system, which has its own database.
      await ask(
        first,
        `select pg_terminate_backend(pid) from pg_stat_activity
         where application_name = 'sandbox-gateway'`,
      );
    },
    close: async () => {
      proxy.close();
      for (const server of running) await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const test = onDevServer
  // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
  .extend('postgres', { scope: 'file' }, async ({}, { onCleanup }) => {
    const servers = await startServers();
    onCleanup(() => servers.close());
    return { servers, refusals: new Set<string>() };
  })
  .extend('env', { scope: 'file' }, async ({ server, postgres }, { onCleanup }) => {
    const env = await createEnvironment(server, {
      postgresUrl: postgres.servers.url,
      // Activities get a pool of their own.
      onStatement: () => undefined,
      wrap: (activities) => ({
        ...activities,
        chargeAttempt: async (input) => {
          try {
            return await activities.chargeAttempt(input);
          } catch (error) {
            postgres.refusals.add((error as Error).message);
            throw error;
          }
        },
      }),
    });
    onCleanup(() => env.close());
    return env;
  });

test('the API writes and a due cycle is charged once after Postgres failed over behind a proxy [D-§8]', async ({
  env,
  postgres: { servers, refusals },
}) => {
  const shop = await openShop(env);
  const createCustomer = () =>
    shop.impatientMerchant
      .post('/customer/create', { customerDetails: { name: 'Ada', email: 'ada@example.com' } })
      .then(
        () => 'created',
        (error: Error) => error.message.replace(/^.*: /, ''),
      );
  const answersToWrites = async () =>
    new Set(await Promise.all(Array.from({ length: WRITES }, createCustomer)));
  const clock = await env.createClock(CREATED_AT);
  const ref = await env.create({
    createdAt: CREATED_AT,
    testClockId: clock,
    terms: { cycleCount: 3 },
  });
  await payCheckout(env, ref);
  await env.stopWorkers();
  const dueAt = Date.parse('2027-02-10T00:00:00Z');
  await env.sendClock(clock, dueAt);

  await servers.demote();
  await env.startWorkers();
  await expect.poll(answersToWrites, BELOW_RATE_LIMIT).toEqual(new Set(['status 503']));
  await expect.poll(() => refusals).toContain(READ_ONLY);

  await servers.promote();
  await expect.poll(answersToWrites, BELOW_RATE_LIMIT).toEqual(new Set(['created']));
  await env.advance(clock, dueAt);
  expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  const charged = async () =>
    (await env.book(ref)).map(({ outcome, amountMinor }) => `${outcome} ${amountMinor}`);
  expect(await charged()).toEqual(['succeeded 1999', 'succeeded 1999']);

  await env.advance(clock, dueAt + 86_400_000);
  expect(await charged()).toEqual(['succeeded 1999', 'succeeded 1999']);
  await shop.close();
});
