// The webhook receiver of the benchmarks, in a separate process. The receiver answers 200 at once and tells the parent
// when each event arrived. A second port accepts connections and never answers. The arguments are the two ports.

import { createServer } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import type { Server } from 'node:net';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { announceReady, onShutdown } from '../../../runtime/shutdown.ts';
import { tellParent } from './child-process.ts';
import type { Arrival } from './receiver.ts';

const server = createServer((request, response) => {
  const at = performance.timeOrigin + performance.now();
  void (async () => {
    const event = JSON.parse(await text(request)) as Record<string, unknown>;
    response.writeHead(200).end();
    const subscriptionId = event['subscriptionId'];
    const arrival: Arrival = {
      path: request.url ?? '',
      at,
      eventId: String(event['eventId']),
      eventType: String(event['eventType']),
      subscriptionId: typeof subscriptionId === 'string' ? subscriptionId : null,
    };
    tellParent(arrival);
  })();
});
const silent = createTcpServer((socket) => {
  socket.on('error', () => undefined);
  socket.resume();
});

const [, , answeringPort, silentPort] = process.argv;
await Promise.all([listen(server, answeringPort), listen(silent, silentPort)]);
onShutdown(
  [
    {
      name: 'receiver',
      close: () => {
        server.close();
        server.closeAllConnections();
      },
    },
  ],
  { logger: { info: () => undefined, error: () => undefined } },
);
announceReady();

async function listen(listener: Server, port: string | undefined): Promise<void> {
  listener.listen(Number(port), '127.0.0.1');
  await once(listener, 'listening');
}
