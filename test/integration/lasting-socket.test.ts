import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { LastingSocket } from '../../db/lasting-socket.ts';

let server: Server | undefined;
let socket: LastingSocket | undefined;

afterEach(async () => {
  socket?.destroy();
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)));
});

/** Opens a socket to a server that answers only the text `question`. */
async function connected(silenceMsMax: number): Promise<LastingSocket> {
  server = createServer((peer) => {
    peer.on('error', () => undefined);
    peer.on('data', (text) => text.toString() === 'question' && peer.write('answer'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  socket = new LastingSocket(silenceMsMax);
  socket.connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

test('a socket is destroyed with ETIMEDOUT when the server does not answer in time', async () => {
  const silent = await connected(50);
  silent.on('data', () => expect.fail('there is no answer'));
  silent.write('a text without an answer');
  const [error] = (await once(silent, 'error').catch((thrown: unknown) => [thrown])) as [unknown];
  expect(error).toMatchObject({ code: 'ETIMEDOUT', message: 'Postgres does not answer' });
  expect(silent.destroyed).toBe(true);
});

test('a socket stays open for any idle time when no answer is outstanding', async () => {
  const quiet = await connected(10_000);
  quiet.write('question');
  expect(String(await once(quiet, 'data'))).toBe('answer');
  for (let idle = 0; idle < 2; idle += 1) {
    quiet.setTimeout(50);
    await once(quiet, 'timeout');
    expect(quiet.destroyed).toBe(false);
  }
  quiet.setTimeout(10_000);
  quiet.write('question');
  expect(String(await once(quiet, 'data'))).toBe('answer');
});
