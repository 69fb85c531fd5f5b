import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { describe, expect } from 'vitest';
import type { RequestState } from '../../../api/http/request.ts';
import { createApiServer, unreadBody } from '../../../api/http/server.ts';
import { createLogger } from '../../../runtime/logger.ts';
import { test as apiTest } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { eventually } from '../../support/eventually.ts';
import { openConnection } from '../../support/raw-connection.ts';
import type { RawAnswer, RawConnection } from '../../support/raw-connection.ts';

/** The environment `limited` allows a merchant one request, and answers later requests 429. */
const test = apiTest.extend('limited', { scope: 'file' }, async ({ createApi }) => {
  const api = await createApi({
    rateLimits: { windowSeconds: 600, requests: 1, readsOfOneSubscription: 1 },
  });
  expect((await api.call('GET', '/webhook')).status).toBe(200);
  return api;
});

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';

/** A request whose body is refused or not read. `as`: the sender; a stranger sends no credentials. */
interface Kind {
  readonly name: string;
  readonly line: string;
  readonly type: string;
  readonly status: number;
  readonly as: 'merchant' | 'stranger' | 'limited merchant';
}

const KINDS = (
  [
    ['an API call with credentials', 'POST /customer/create', JSON_TYPE, 400, 'merchant'],
    ['an API call without credentials', 'POST /customer/create', JSON_TYPE, 401, 'stranger'],
    [
      'an API call above the rate limit',
      'POST /customer/create',
      JSON_TYPE,
      429,
      'limited merchant',
    ],
    [
      'an API call with a content type other than JSON',
      'PUT /webhook/whc_0000000000000000000000',
      'text/plain',
      400,
      'merchant',
    ],
    ['an unknown path', 'POST /nowhere', JSON_TYPE, 404, 'stranger'],
    ['a known path with another method', 'PATCH /subscription/create', JSON_TYPE, 405, 'stranger'],
    ['the form of a link', 'POST /l/000000000000', FORM_TYPE, 400, 'stranger'],
    [
      'the details form of a checkout',
      'POST /checkout/0000000000000000000000',
      FORM_TYPE,
      400,
      'stranger',
    ],
    [
      'a POST to a hosted page without a form',
      'POST /update-method/0000000000000000000000',
      FORM_TYPE,
      405,
      'stranger',
    ],
    ['a GET of a hosted page', 'GET /checkout/0000000000000000000000', FORM_TYPE, 404, 'stranger'],
    ['a GET of the API', 'GET /webhook', JSON_TYPE, 200, 'merchant'],
    [
      'a DELETE of the API',
      'DELETE /webhook/whc_0000000000000000000000',
      JSON_TYPE,
      400,
      'merchant',
    ],
  ] as const
).map(([name, line, type, status, as]): Kind => ({ name, line, type, status, as }));

interface Apis {
  readonly api: ApiEnvironment;
  readonly limited: ApiEnvironment;
}

function head({ line, type, as }: Kind, { api, limited }: Apis, framing: string): string {
  const { keyId, secret } = as === 'limited merchant' ? limited.merchant : api.merchant;
  const credentials = Buffer.from(`${keyId}:${secret}`).toString('base64');
  const lines = [`${line} HTTP/1.1`, 'Host: x', `Content-Type: ${type}`, framing];
  if (as !== 'stranger') lines.push(`Authorization: Basic ${credentials}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}

const urlOf = ({ as }: Kind, { api, limited }: Apis): string =>
  as === 'limited merchant' ? limited.url : api.url;

/** Sends a call of this kind on a new connection and expects the status that the kind names. */
async function refusedCall(kind: Kind, apis: Apis, framing: string, body: Buffer) {
  const connection = openConnection(urlOf(kind, apis));
  connection.write(head(kind, apis, framing));
  connection.write(body);
  const answer = await connection.answer();
  expect(answer.status, framing).toBe(kind.status);
  return { connection, answer };
}

/** Sends five requests and expects 200: on this connection, or on a new one if the answer closed it. */
async function expectServed(url: string, connection: RawConnection, answer: RawAnswer) {
  const isKept = answer.headers['connection'] === 'keep-alive';
  if (!isKept) await connection.closed;
  expect(connection.rest()).toBe('');
  const next = isKept ? connection : openConnection(url);
  for (let count = 0; count < 5; count += 1) {
    next.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n');
    const { status, body } = await next.answer();
    expect([status, body]).toEqual([
      200,
      '{"status":"ok","heldSubscriptions":0,"blockedAccounts":0}',
    ]);
  }
  next.close();
}

/** The bytes are not valid JSON, so a body of any size is refused. */
const bytes = (size: number): Buffer => Buffer.alloc(size, 'x');

function chunked(size: number): Buffer {
  const chunk = Buffer.concat([Buffer.from('2000\r\n'), bytes(8_192), Buffer.from('\r\n')]);
  const count = Math.ceil(size / 8_192);
  return Buffer.concat([...Array.from({ length: count }, () => chunk), Buffer.from('0\r\n\r\n')]);
}

/** Below and above the bytes that the server reads before its answer. */
const SIZES = [
  [1_000, 1_000_000],
  [10_000, 10_000_000],
] as const;

/** Just above the largest body of a call that is parsed, and more. */
const SIZES_OF_A_CALL = [[65, 66_560], [600, 600_000], ...SIZES] as const;

const CASES = KINDS.flatMap((kind, index) =>
  (index === 0 ? SIZES_OF_A_CALL : SIZES).map(
    ([kilobytes, size]) => [kind.name, kilobytes, size, kind] as const,
  ),
);

describe('a refused or unread body', () => {
  test.for(CASES)(
    'does not delay the next requests when %s has a body of %i kB [D-10]',
    async ([, , size, kind], { api, limited }) => {
      const apis = { api, limited };
      const url = urlOf(kind, apis);
      const framings = [
        [`Content-Length: ${size}`, bytes(size)],
        ['Transfer-Encoding: chunked', chunked(size)],
      ] as const;
      for (const [framing, body] of framings) {
        const { connection, answer } = await refusedCall(kind, apis, framing, body);
        await expectServed(url, connection, answer);
      }
    },
  );

  test.for(KINDS.map((kind) => [kind.name, kind] as const))(
    'closes the connection of %s when the body does not arrive completely [D-10]',
    async ([, kind], { api, limited }) => {
      const apis = { api, limited };
      const url = urlOf(kind, apis);
      const framings = [
        ['Content-Length: 600000', bytes(1_000)],
        ['Transfer-Encoding: chunked', chunked(600_000).subarray(0, -5)],
      ] as const;
      for (const [framing, body] of framings) {
        const { connection, answer } = await refusedCall(kind, apis, framing, body);
        expect(answer.headers['connection']).toBe('close');
        await expectServed(url, connection, answer);
      }
    },
  );

  test('keeps the connection of a refused call when the rest of its body arrives [D-10]', async ({
    api,
    limited,
  }) => {
    const [kind] = KINDS;
    // The rest must arrive within 500 ms. On a busy machine a body may take longer, and its connection is closed.
    await eventually(async () => {
      const connection = openConnection(api.url);
      connection.write(head(kind!, { api, limited }, 'Content-Length: 600000'));
      connection.write(bytes(600_000));
      const answer = await connection.answer();
      expect([answer.status, answer.headers['connection']]).toEqual([400, 'keep-alive']);
      await expectServed(api.url, connection, answer);
    });
  });
});

test('a request that follows an answer with Connection: close is not handled [D-10]', async () => {
  const handled: string[] = [];
  const app = new Koa<RequestState>();
  app.use(unreadBody()).use((ctx) => {
    handled.push(ctx.path);
    ctx.body = 'done';
  });
  const deps = {
    logger: createLogger({ name: 'test', level: 'silent' }),
    now: Date.now,
    random: randomBytes,
  };
  const server = createApiServer(app, deps);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const connection = openConnection(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  connection.write('POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n');
  const answer = await connection.answer();
  expect([answer.status, answer.headers['connection']]).toEqual([200, 'close']);
  connection.write(`${'x'.repeat(1_000_000)}POST /second HTTP/1.1\r\nHost: x\r\n\r\n`);
  await connection.closed;
  expect(connection.rest()).toBe('');
  // After the client has closed, the server may still read bytes that the client sent.
  await server.drain();
  expect(handled).toEqual(['/first']);
});
