// The webhook receiver of the benchmarks, in a separate process. The receiver answers 200 at once and records
// when each event arrived. A second port accepts connections and never answers.

import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { once } from 'node:events';
import { announceReady, onShutdown } from '../../../runtime/shutdown.ts';
import { answerParent } from './child-process.ts';
import type { Arrival, ReceiverRequest } from './receiver.ts';

const arrivals: Arrival[] = [];

const server = createServer((request, response) => {
  const at = performance.timeOrigin + performance.now();
  void (async () => {
    const event = JSON.parse(await textOf(request)) as Record<string, unknown>;
    response.writeHead(200).end();
    const subscriptionId = event['subscriptionId'];
    arrivals.push({
      path: request.url ?? '',
      at,
      eventId: String(event['eventId']),
      eventType: String(event['eventType']),
      subscriptionId: typeof subscriptionId === 'string' ? subscriptionId : null,
    });
  })();
});
const silent = createTcpServer((socket) => {
  socket.on('error', () => undefined);
  socket.resume();
});

const ports = { answering: await listen(server), silent: await listen(silent) };
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
answerParent((message) => {
  const request = message as ReceiverRequest;
  if (request.kind === 'ports') return ports;
  const matching = arrivals.filter(
    ({ path, at, eventType }) =>
      path === request.path &&
      at >= request.since &&
      (request.eventType === undefined || eventType === request.eventType),
  );
  if (request.kind === 'arrivals') return matching;
  return new Set(matching.map(({ subscriptionId }) => subscriptionId)).size;
});
announceReady();

async function listen(listener: Server): Promise<number> {
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return (listener.address() as AddressInfo).port;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
