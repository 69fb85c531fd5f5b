import postgres from 'postgres';
import { expect, onTestFinished } from 'vitest';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';

/** More writes than the pool has connections, so that every connection gets one. */
const WRITES = 30;

/** Opens a session that may change the database's settings and end the sessions of the API. */
function administrator({ databaseUrl }: ApiEnvironment) {
  const server = new URL(databaseUrl);
  const name = server.pathname.slice(1);
  server.pathname = '/postgres';
  const admin = postgres(server.href, { max: 1 });
  onTestFinished(() => admin.end({ timeout: 5 }));
  return {
    /** New sessions are read-only or not. Open sessions keep their setting. */
    setReadOnly: (is: boolean) =>
      admin.unsafe(`alter database ${name} set default_transaction_read_only = ${is}`),
    endSessions: () =>
      admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`,
  };
}

async function statusesOfWrites(api: ApiEnvironment) {
  const answers = await Promise.all(
    Array.from({ length: WRITES }, () =>
      api.call('POST', '/customer/create', {
        body: { customerDetails: { name: 'Ada Example', email: 'ada@example.com' } },
      }),
    ),
  );
  return new Set(answers.map(({ status, json }) => [status, Object(json).errorCode].join(' ')));
}

test('the API answers 503 while its sessions are read-only, and writes again once new sessions may write [D-§8]', async ({
  api,
}) => {
  const { setReadOnly, endSessions } = administrator(api);
  const health = async () => (await api.call('GET', '/health', { as: null })).status;
  await setReadOnly(true);
  await endSessions();
  await expect.poll(() => statusesOfWrites(api)).toEqual(new Set(['503 service_unavailable']));
  expect(await health()).toBe(503);

  await setReadOnly(false);
  await expect.poll(health).toBe(200);
  await expect.poll(() => statusesOfWrites(api)).toEqual(new Set(['200 ']));
  expect(await health()).toBe(200);
});
