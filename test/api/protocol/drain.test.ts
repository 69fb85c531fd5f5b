import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { RequestState } from '../../../api/context.ts';
import { createApiServer } from '../../../api/server.ts';
import { createLogger } from '../../../runtime/logger.ts';
import { KEEP_ALIVE_MS } from '../../support/keep-alive.ts';

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
