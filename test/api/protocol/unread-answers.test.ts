import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';
import Koa from 'koa';
import { expect, onTestFinished, test } from 'vitest';
import type { RequestState } from '../../../api/http/request.ts';
import { createApiServer } from '../../../api/http/server.ts';
import type { ApiServer, ApiServerOptions } from '../../../api/http/server.ts';
import { createLogger } from '../../../runtime/logger.ts';

/** More than the kernel buffers for a client that does not read. */
const LONG_ANSWER = Buffer.alloc(20_000_000, 'x');

const GET = 'GET / HTTP/1.1\r\nHost: api\r\n\r\n';

/** A time limit in ms that no test reaches. */
const NEVER_MS = 3_600_000;

/** An answer that begins and never ends. */
async function* halfAnswer() {
  yield 'half';
  await new Promise(() => undefined);
}

/** Returns a listening server and the paths of the requests that its app handled. */
async function startServer(options: ApiServerOptions) {
  const handled: string[] = [];
  const app = new Koa<RequestState>();
  app.silent = true;
  const logger = createLogger({ name: 'unread-answers', level: 'silent' });
  app.use(async (ctx) => {
    handled.push(ctx.path);
    if (ctx.path === '/after-timeout') await once(server, 'timeout');
    if (ctx.path === '/after-stalled') await once(server, 'stalled reader gone');
    ctx.body = ctx.path === '/' ? LONG_ANSWER : 'done';
    if (ctx.path === '/half') ctx.body = Readable.from(halfAnswer());
  });
  const server = createApiServer(app, { logger, now: Date.now, random: randomBytes }, options);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, handled };
}

/** Sends `text` on a new connection that does not read. Returns it with the server's side of the connection. */
async function sendUnread(server: ApiServer, text: string) {
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => undefined);
  client.pause();
  onTestFinished(() => void client.destroy());
  const [served] = (await once(server, 'connection')) as [Socket];
  client.write(text);
  return { client, served };
}

async function textOf(client: Socket): Promise<string> {
  client.resume();
  const chunks: Buffer[] = [];
  for await (const chunk of client as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

test('a client that does not read is disconnected after the write time-out, and only the first of its 60 requests is handled [D-10]', async () => {
  const { server, handled } = await startServer({ writeTimeoutMs: 100 });
  const { served } = await sendUnread(server, GET.repeat(60));
  await once(served, 'close');
  expect(handled).toEqual(['/']);
  await server.drain();
});

test('sixteen pipelined requests are answered, and the answer to the sixteenth closes the connection [D-10]', async () => {
  const { server, handled } = await startServer({ writeTimeoutMs: NEVER_MS });
  const { client } = await sendUnread(server, GET.replace('/', '/short').repeat(17));
  const answers = (await textOf(client)).split('HTTP/1.1 200 OK').slice(1);
  const closing = answers.map((answer) => answer.includes('Connection: close'));
  expect(closing).toEqual([...Array.from({ length: 15 }, () => false), true]);
  expect(handled).toHaveLength(16);
  await server.drain();
});

test('a request that is handled for longer than the write time-out is answered [D-10]', async () => {
  const { server } = await startServer({ writeTimeoutMs: 50 });
  const request = 'GET /after-timeout HTTP/1.1\r\nHost: api\r\nConnection: close\r\n\r\n';
  const { client } = await sendUnread(server, request);
  expect(await textOf(client)).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\ndone$/);
  await server.drain();
});

test('a drain drops clients that do not read, and answers the request that is being handled [D-17]', async () => {
  const options = { writeTimeoutMs: NEVER_MS, drainWriteTimeoutMs: 50 };
  const { server, handled } = await startServer(options);
  const { client } = await sendUnread(server, GET.replace('/', '/after-stalled'));
  const stalled = [];
  for (let count = 0; count < 5; count += 1) stalled.push(await sendUnread(server, GET.repeat(16)));
  await expect.poll(() => handled.length).toBe(6);
  const drained = server.drain();
  await Promise.all(stalled.map(({ served }) => once(served, 'close')));
  server.emit('stalled reader gone');
  expect(await textOf(client)).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*Connection: close[^]*\r\ndone$/);
  await drained;
  expect(server.listening).toBe(false);
});

test('unreadable input behind a waiting request gets no answer inside the first answer, and closes the connection [IF-7]', async () => {
  const { server, handled } = await startServer({ writeTimeoutMs: NEVER_MS });
  const { client } = await sendUnread(server, GET.replace('/', '/half'));
  const [begun] = (await once(client.resume(), 'data')) as [Buffer];
  expect(begun.toString()).toContain('HTTP/1.1 200 OK');
  client.write(`${GET}GARBAGE\r\n\r\n`);
  expect(await textOf(client)).not.toContain('HTTP/1.1 400');
  expect(handled).toEqual(['/half']);
  await server.drain();
});
