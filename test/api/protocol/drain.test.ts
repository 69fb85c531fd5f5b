import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { RequestState } from '../../../api/http/request.ts';
import { createApiServer } from '../../../api/http/server.ts';
import { createLogger } from '../../../runtime/logger.ts';
import { KEEP_ALIVE_MS } from '../../../tools/scripts/client/listen.ts';

test('a request that arrives while the API server stops is answered with Connection: close [D-17]', async () => {
  const app = new Koa<RequestState>();
  app.use((ctx) => {
    ctx.body = 'done';
  });
  const logger = createLogger({ name: 'drain', level: 'silent' });
  const server = createApiServer(
    app,
    { logger, now: Date.now, random: randomBytes },
    { keepAliveTimeout: KEEP_ALIVE_MS },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: api\r\n\r\n');
  const [first] = (await once(socket, 'data')) as [Buffer];
  expect(first.toString().split('\r\n')).toContain('Connection: keep-alive');

  // The check for idle connections would close this one if the request took a second to arrive.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const drained = server.drain();
  socket.write('GET / HTTP/1.1\r\nHost: api\r\n\r\n');
  const [second] = (await once(socket, 'data')) as [Buffer];
  const [status, ...lines] = second.toString().split('\r\n');
  expect([status, lines.at(-1)]).toEqual(['HTTP/1.1 200 OK', 'done']);
  expect(lines).toContain('Connection: close');
  await once(socket, 'close');
  await drained;
  expect(server.listening).toBe(false);
});

test('a drain that begins during sixteen pipelined requests ends the connection after the second one [D-17]', async () => {
  const handled: string[] = [];
  let drained: Promise<void> | undefined;
  const app = new Koa<RequestState>();
  app.use((ctx) => {
    handled.push(ctx.path);
    ctx.body = 'done';
    // A signal, too, is seen only between two turns of the event loop.
    if (ctx.path === '/1') setImmediate(() => void (drained = server.drain()));
  });
  const logger = createLogger({ name: 'drain', level: 'silent' });
  const server = createApiServer(app, { logger, now: Date.now, random: randomBytes });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const paths = Array.from({ length: 16 }, (_, index) => `/${index + 1}`);
  socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: api\r\n\r\n`).join(''));
  const chunks: Buffer[] = [];
  for await (const chunk of socket as AsyncIterable<Buffer>) chunks.push(chunk);
  const answers = Buffer.concat(chunks).toString().split('HTTP/1.1 200 OK').slice(1);
  expect(answers.map((answer) => answer.includes('Connection: close'))).toEqual([false, true]);
  await drained;
  expect(handled).toEqual(['/1', '/2']);
  expect(server.listening).toBe(false);
});
