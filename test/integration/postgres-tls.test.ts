import { appendFileSync, chmodSync, chownSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDb, requireDirect } from '../../db/client.ts';
import type { Db } from '../../db/client.ts';
import { openDriver } from '../../db/connection.ts';
import { isMigrated, migrate } from '../../db/migrate.ts';
import { freePort } from '../../tools/embedded/ports.ts';
import { postgresService, postgresUrl } from '../../tools/embedded/postgres.ts';
import { supervise } from '../../tools/embedded/services.ts';
import type { Service, SupervisedService } from '../../tools/embedded/services.ts';
import { makeCertificate } from '../support/certificate.ts';

let folder: string;
let caFile: string;
let baseUrl: URL;
let service: Service;
let server: SupervisedService;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'perennial-tls-'));
  // Postgres may run as another account.
  chmodSync(folder, 0o755);
  const dataFolder = join(folder, 'data');
  const settings = {
    dataFolder,
    logFile: join(folder, 'postgres.log'),
    port: await freePort(),
    password: 'test',
    isDurable: false,
  };
  service = postgresService(settings, () => undefined);
  await service.beforeLaunch?.();
  const { cert, key } = makeCertificate(dataFolder, 'localhost');
  const { uid, gid } = statSync(dataFolder);
  for (const file of [cert, key]) chownSync(file, uid, gid);
  chmodSync(key, 0o600);
  appendFileSync(join(dataFolder, 'postgresql.auto.conf'), 'ssl = on\n');
  server = supervise(service, { report: () => undefined });
  await server.start();
  caFile = cert;
  baseUrl = new URL(postgresUrl(settings, 'postgres'));
});

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

function urlWith(host: string, query: Record<string, string>): string {
  const url = new URL(baseUrl);
  url.hostname = host;
  url.search = new URLSearchParams(query).toString();
  return url.href;
}

async function connected<Result>(url: string, work: (db: Db) => Promise<Result>): Promise<Result> {
  const handle = createDb({ url, poolSize: 1, applicationName: 'test' });
  try {
    return await work(handle.db);
  } finally {
    await handle.close();
  }
}

const tlsVersion = (db: Db) =>
  db
    .execute<{ version: string | null }>(
      sql`select version from pg_stat_ssl where pid = pg_backend_pid()`,
    )
    .then(([row]) => row?.version);

test('sslmode=verify-full with sslrootcert connects by TLS, migrates, and has the time limits', async () => {
  const url = urlWith('localhost', { sslmode: 'verify-full', sslrootcert: caFile });
  await migrate(url, { applicationName: 'test', report: () => undefined });
  await connected(url, async (db) => {
    expect(await tlsVersion(db)).toBe('TLSv1.3');
    await requireDirect(db);
    expect(await isMigrated(db)).toBe(true);
  });
});

test('sslmode=verify-full refuses another host name and an unknown certificate', async () => {
  const select = (host: string, query: Record<string, string>) =>
    connected(urlWith(host, { sslmode: 'verify-full', ...query }), tlsVersion);
  await expect(select('127.0.0.1', { sslrootcert: caFile })).rejects.toMatchObject({
    cause: { code: 'ERR_TLS_CERT_ALTNAME_INVALID' },
  });
  await expect(select('localhost', {})).rejects.toMatchObject({
    cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
  });
});

test.for([
  [{ sslmode: 'require' }, 'TLSv1.3'],
  [{ sslmode: 'verify-ca' }, 'TLSv1.3'],
  [{ sslmode: 'disable' }, undefined],
] as const)('%o gives a connection at any host name', async ([query, version]) => {
  const root = query.sslmode === 'verify-ca' ? { sslrootcert: caFile } : {};
  const url = urlWith('127.0.0.1', { ...query, ...root });
  expect((await connected(url, tlsVersion)) ?? undefined).toBe(version);
});

test.for([
  [
    'localhost',
    { sslmode: 'prefer' },
    'sslmode must be one of disable, require, verify-ca, verify-full',
  ],
  ['localhost', { sslrootcert: 'ca.pem' }, 'sslrootcert needs an sslmode'],
  ['localhost', { sslrootcert: 'ca.pem', sslmode: 'disable' }, 'sslrootcert needs an sslmode'],
  ['localhost', { ssl: 'true' }, 'set sslmode instead of ssl'],
  ['localhost,127.0.0.1', {}, 'name one host'],
] as const)('the host %s with %o is refused', ([host, query, problem]) => {
  const url = urlWith(host, query);
  const open = () => createDb({ url, poolSize: 1, applicationName: 'test' });
  expect(open).toThrow(`DATABASE_URL: ${problem}`);
});

test('a pool over TLS replaces a connection that the server ended, and one that could not be opened', async () => {
  const url = urlWith('localhost', { sslmode: 'verify-full', sslrootcert: caFile });
  await connected(url, async (db) => {
    const end = db.execute(sql`select pg_terminate_backend(pg_backend_pid())`);
    await expect(end).rejects.toThrow(/Failed query/);
    await expect.poll(() => tlsVersion(db).catch(() => 'down')).toBe('TLSv1.3');
    await server.stop();
    await expect(tlsVersion(db)).rejects.toThrow(/Failed query/);
    server = supervise(service, { report: () => undefined });
    await server.start();
    await expect.poll(() => tlsVersion(db).catch(() => 'down')).toBe('TLSv1.3');
  });
});

test('a pool whose settings do not arrive is refused, also if the role has the time limits', async () => {
  const url = urlWith('localhost', { sslmode: 'require' });
  await connected(url, async (db) => {
    await requireDirect(db);
    await db.execute(sql`alter role postgres set statement_timeout = 15000`);
  });
  const withoutSettings = openDriver(url, { max: 1 });
  const check = requireDirect(drizzle({ client: withoutSettings }));
  await expect(check).rejects.toThrow(/DATABASE_URL must lead to Postgres itself.*PgBouncer/);
  await withoutSettings.end();
});
