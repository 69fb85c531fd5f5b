import { once } from 'node:events';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { createTemporalClient } from '../../temporal/client.ts';

const UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;

test('a call that waits for its retry when the connection is closed is rejected, and throws nowhere else', async () => {
  const refused: string[] = [];
  const thrown: unknown[] = [];
  const note = (error: unknown) => thrown.push(error);
  const server = createServer((request, answer) => {
    const isFirst = request.url.endsWith('GetSystemInfo');
    const status = isFirst ? UNIMPLEMENTED : UNAVAILABLE;
    if (!isFirst) refused.push(request.url);
    answer.stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': status },
      { endStream: true },
    );
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const temporal = createTemporalClient({
    temporalAddress: `127.0.0.1:${port}`,
    temporalNamespace: 'default',
  });
  const outcome = temporal.reach().then(
    () => 'reached',
    ({ code, details }: { code: number; details: string }) => [code, details],
  );
  process.on('uncaughtException', note);
  try {
    await expect.poll(() => refused.length).toBeGreaterThanOrEqual(1);
    await temporal.close();
    expect(await outcome).toEqual([1, 'Channel has been shut down']);
    expect(thrown).toEqual([]);
  } finally {
    process.off('uncaughtException', note);
    server.close();
  }
});
