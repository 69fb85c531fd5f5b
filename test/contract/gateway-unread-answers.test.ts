import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { writeAnswer } from '../../gateways/http-server/http.ts';
import { listen, stop } from '../../gateways/http-server/listening.ts';

/** More than the kernel buffers for a client that does not read. */
const LONG_ANSWER = 'x'.repeat(20_000_000);

test('a gateway disconnects a client that does not read its answer for 15 s [D-10]', async () => {
  const handled: string[] = [];
  const server = createServer((request, response) => {
    handled.push(request.url ?? '');
    writeAnswer(response, { status: 200, headers: {}, body: LONG_ANSWER });
  });
  const { port } = new URL(await listen(server, {}));
  const client = connect(Number(port), '127.0.0.1');
  client.on('error', () => undefined);
  client.pause();
  onTestFinished(() => void client.destroy());
  const [served] = (await once(server, 'connection')) as [Socket];
  client.write('GET / HTTP/1.1\r\nHost: gateway\r\n\r\n');
  await expect.poll(() => served.writableLength).toBeGreaterThan(0);
  expect(served.timeout).toBe(15_000);
  served.setTimeout(20);
  await once(served, 'close');
  await stop(server);
  expect(handled).toEqual(['/']);
});
