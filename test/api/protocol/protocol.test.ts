import { connect } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import { test } from '../../support/api-environment.ts';
import { expectError } from '../../support/answers.ts';
import postgres from 'postgres';
import type { ApiEnvironment } from '../../support/api-environment.ts';

test('the health route answers without credentials', async ({ api }) => {
  const answer = await api.call('GET', '/health', { as: null });
  expect([answer.status, answer.text]).toEqual([
    200,
    '{"status":"ok","heldSubscriptions":0,"blockedAccounts":0}',
  ]);
});

test('an answer has a request id and the security headers [D-§8]', async ({ api }) => {
  const answer = await api.call('GET', '/webhook');
  const { 'request-id': requestId, date, ...headers } = answer.headers;
  expect(requestId).toMatch(/^req_[0-9A-Za-z]{22}$/);
  expect(date).toBeDefined();
  expect(headers).toEqual({
    'content-type': 'application/json; charset=utf-8',
    'content-length': '11',
    'content-security-policy':
      "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    'x-robots-tag': 'noindex, nofollow',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=(self)',
    'strict-transport-security': 'max-age=63072000; includeSubDomains',
    connection: 'keep-alive',
    'keep-alive': 'timeout=65',
  });
});

test.for<[string, string, string]>([
  ['GET', '/subscription/create', 'POST'],
  ['POST', '/customer/cus_0000000000000000000000', 'HEAD, GET, PUT'],
  // `create` and `advance` are parts of a route, not ids.
  ['GET', '/customer/create', 'POST'],
  ['GET', '/test-clock/advance', 'POST'],
  ['PATCH', '/webhook/whc_0000000000000000000000', 'PUT, DELETE'],
  ['OPTIONS', '/webhook', 'POST, HEAD, GET'],
  ['POST', '/customer', 'HEAD, GET'],
  ['POST', '/subscription', 'HEAD, GET'],
  ['POST', '/payments', 'HEAD, GET'],
  ['GET', '/payments/create-intent', 'POST'],
  ['GET', '/setup-method/create', 'POST'],
])('%s %s answers 405 and allows %s [D-21]', async ([method, path, allow], { api }) => {
  const answer = await api.call(method, path, { as: null });
  expect(answer.status).toBe(405);
  expect(answer.headers['allow']).toBe(allow);
  expect(answer.json).toEqual({
    errorCode: 'method_not_allowed',
    errorDescription: 'This address does not serve this method.',
  });
});

test.for(['/Customer/create', '/customers', '/customer/a/b', '/..%2fetc', '/favicon.ico'])(
  '%s answers 404 [D-21]',
  async (path, { api }) => {
    const answer = await api.call('GET', path, { as: null });
    expectError(answer, 404, 'route_not_found', `There is no GET ${path}.`);
  },
);

test('a client gets the refusal of a body over 512 kB although the body has not ended [D-10]', async ({
  api,
}) => {
  const answer = await new Promise<string>((resolve, reject) => {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString();
      if (text.includes('\r\n\r\n')) socket.destroy();
    });
    socket.on('close', () => resolve(text));
    socket.on('error', reject);
    const { keyId, secret } = api.merchant;
    socket.write(
      `POST /customer/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
        `Authorization: Basic ${Buffer.from(`${keyId}:${secret}`).toString('base64')}\r\n` +
        `Transfer-Encoding: chunked\r\n\r\n`,
    );
    // 528 kB without the final chunk. The limit is 512 kB.
    for (let kilobytes = 0; kilobytes < 528; kilobytes += 1) {
      socket.write(`400\r\n${'x'.repeat(1_024)}\r\n`);
    }
  });
  expect(answer.split('\r\n')[0]).toBe('HTTP/1.1 400 Bad Request');
});

test('the cause of a 500 is in the log under the answer’s request id, and not in the answer [IF-7, IF-2.9]', async ({
  api,
}) => {
  await api.db.execute('alter table customer rename to customer_away');
  const answer = await api.call('POST', '/customer/create', {
    body: { customerDetails: { name: 'Ada Secretname' } },
  });
  await api.db.execute('alter table customer_away rename to customer');

  expect(answer.status).toBe(500);
  expect(answer.text).toBe(
    '{"errorCode":"internal_server_error","errorDescription":' +
      '"Something went wrong on our side. Quote the Request-Id when you report it."}',
  );
  const requestId = answer.headers['request-id'];
  const lines = api.logLines.filter((line) => line['requestId'] === requestId);
  expect(lines).toHaveLength(2);
  expect(lines[0]).toMatchObject({
    msg: 'request failed',
    causes: ['DrizzleQueryError', 'PostgresError 42P01'],
  });
  expect(lines[1]).toMatchObject({
    msg: 'request',
    route: 'POST /customer/create',
    status: 500,
    errorCode: 'internal_server_error',
    merchantId: api.merchant.merchantId,
  });
  // The error's message, which contains the statement and its values, is not logged.
  expect(JSON.stringify(lines)).not.toContain('Secretname');
});

test('a line of the access log has the route and no value of the request [D-§8]', async ({
  api,
}) => {
  const answer = await api.call('GET', '/customer/cus_0000000000000000000000?q=secret');
  const line = api.logLines.findLast(({ requestId }) => requestId === answer.headers['request-id']);
  expect(Object.keys(line!).toSorted()).toEqual([
    'errorCode',
    'level',
    'merchantId',
    'ms',
    'msg',
    'name',
    'pid',
    'requestId',
    'route',
    'status',
    'time',
  ]);
  expect(line).toMatchObject({ route: 'GET /customer/:customerId', status: 400 });
});

test('the API answers 503 while its database is unavailable, and serves requests again after that [D-§8]', async ({
  api,
}) => {
  const { keyId, secret } = api.merchant;
  const broken = await api.withoutDatabase(() =>
    Promise.all([
      api.call('GET', '/health', { as: null }),
      api.call('POST', '/customer/create', {
        body: { customerDetails: {} },
        as: { keyId, secret },
      }),
    ]),
  );
  expect(broken.map(({ status }) => status)).toEqual([503, 503]);
  expect(broken[1].json).toEqual({
    errorCode: 'service_unavailable',
    errorDescription:
      'The service is not available at the moment. It is safe to repeat with the same key.',
  });
  await expect.poll(async () => (await api.call('GET', '/health')).status).toBe(200);
});

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
