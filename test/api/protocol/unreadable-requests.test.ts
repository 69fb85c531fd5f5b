import { connect } from 'node:net';
import { expect } from 'vitest';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { openConnection } from '../../support/raw-connection.ts';

/** Sends `bytes` and returns everything that is received until the connection closes. */
function exchange(api: ApiEnvironment, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => (text += chunk.toString()));
    socket.on('close', () => resolve(text));
    socket.on('error', reject);
    socket.write(bytes);
  });
}

test.for<[name: string, bytes: string, reason: string | null]>([
  ['a request that is not HTTP', 'GARBAGE\r\n\r\n', 'The request is not valid HTTP.'],
  ['a malformed header', 'GET /health HTTP/1.1\r\nHost: x\r\nBroken Header\r\n\r\n', null],
  ['an unknown HTTP method', 'FOO /health HTTP/1.1\r\nHost: x\r\n\r\n', null],
  [
    'a request without a Host header',
    'GET /health HTTP/1.1\r\nConnection: close\r\n\r\n',
    'The request has no Host header.',
  ],
  [
    'a URL without a path',
    'GET foo://bar HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    'The request has no valid URL.',
  ],
  [
    'a URL with a broken host',
    'GET http://[/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    'The request has no valid URL.',
  ],
  [
    'a URL of 20 kB',
    `GET /payments?offset=${'a'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    'The address and the headers are too long.',
  ],
])(
  '%s is refused with a JSON error, whose request id is in the log [IF-7, D-§8]',
  async ([, bytes, reason], { api }) => {
    const [head = '', body = ''] = (await exchange(api, bytes)).split('\r\n\r\n');
    const [status, ...headers] = head.split('\r\n');

    expect(status).toBe('HTTP/1.1 400 Bad Request');
    expect(JSON.parse(body)).toEqual({
      errorCode: 'bad_request',
      errorDescription: reason ?? 'The request is not valid HTTP.',
    });
    expect(headers).toContain('Content-Type: application/json; charset=utf-8');
    expect(headers).toContain(`Content-Length: ${body.length}`);
    const id = headers.find((header) => header.startsWith('Request-Id: '))?.slice(12);
    expect(id).toMatch(/^req_[0-9A-Za-z]{22}$/);
    expect(api.logLines.find(({ requestId }) => requestId === id)).toMatchObject({ status: 400 });
  },
);

test('an unknown Expect header is ignored [IF-7, D-§8]', async ({ api }) => {
  const answer = await exchange(
    api,
    'GET /health HTTP/1.1\r\nHost: x\r\nExpect: a-miracle\r\nConnection: close\r\n\r\n',
  );
  expect(answer.split('\r\n')[0]).toBe('HTTP/1.1 200 OK');
  expect(answer).toMatch(/\r\nRequest-Id: req_[0-9A-Za-z]{22}\r\n/);
  expect(answer).toMatch(/\{"status":"ok","heldSubscriptions":0,"blockedAccounts":0\}$/);
});

test('a body with broken chunked framing gets exactly one answer [IF-7]', async ({ api }) => {
  const { keyId, secret } = api.merchant;
  const answer = await exchange(
    api,
    'POST /customer/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
      `Authorization: Basic ${Buffer.from(`${keyId}:${secret}`).toString('base64')}\r\n` +
      'Transfer-Encoding: chunked\r\n\r\n5\r\n{"cus\r\nno length\r\n',
  );
  expect(answer.match(/HTTP\/1\.1 /g)).toEqual(['HTTP/1.1 ']);
  expect(answer.split('\r\n')[0]).toBe('HTTP/1.1 400 Bad Request');
});

test('an HTTP/1.0 request needs no Host header [IF-7]', async ({ api }) => {
  const answer = await exchange(api, 'GET /health HTTP/1.0\r\n\r\n');
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
});

test.for<[name: string, path: string, type: string]>([
  ['an API call', '/customer/create', 'application/json'],
  ['a hosted page', '/checkout/0000000000000000000000', 'application/x-www-form-urlencoded'],
])(
  'the abort of an upload to %s by the client is not logged as an error of the server [D-§8]',
  async ([, path, type], { api }) => {
    const { keyId, secret } = api.merchant;
    const head = [
      `POST ${path} HTTP/1.1`,
      'Host: x',
      'Expect: 100-continue',
      `Content-Type: ${type}`,
      `Authorization: Basic ${Buffer.from(`${keyId}:${secret}`).toString('base64')}`,
    ].join('\r\n');
    const unfinished = [
      `${head}\r\nContent-Length: 5000\r\n\r\n{"customerDetails":{`,
      `${head}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"cus\r\n`,
      `${head}\r\nContent-Length: 5000\r\n\r\n`,
    ];
    const before = await api.countRows();
    const earlier = api.logLines.length;
    for (const bytes of unfinished) {
      for (const abort of ['close', 'reset'] as const) {
        const handled = () => api.logLines.slice(earlier).filter(({ msg }) => msg === 'request');
        const count = handled().length;
        const connection = openConnection(api.url);
        connection.write(bytes);
        await expect.poll(() => connection.rest()).toMatch(/^HTTP\/1\.1 100 /);
        connection[abort]();
        await expect.poll(() => handled().length).toBe(count + 1);
      }
    }
    const lines = api.logLines.slice(earlier);
    expect(lines.filter(({ msg }) => msg === 'request').map(({ status }) => status)).toEqual([
      400, 400, 400, 400, 400, 400,
    ]);
    expect(lines.filter(({ level }) => Number(level) > 30)).toEqual([]);
    expect(await api.countRows()).toEqual(before);
  },
);
