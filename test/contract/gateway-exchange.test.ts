import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createSandboxClient } from '../../gateways/sandbox/client.ts';
import { createExchange } from '../../gateways/sandbox/exchange.ts';

type Answering = (request: IncomingMessage, response: ServerResponse) => void;

/** Starts an HTTP server that records its requests. Returns it with an exchange that sends requests to it. */
async function start(answering: Answering, changes: { timeoutMs?: number } = {}) {
  const arrived: string[] = [];
  const server = createServer((request, response) => {
    arrived.push(`${request.method} ${request.url}`);
    request.resume().on('end', () => answering(request, response));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const exchange = createExchange({
    url,
    bearer: 'key',
    timeoutMs: 30_000,
    connections: 1,
    ...changes,
  });
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await exchange.close();
  });
  return { arrived, exchange, server, url };
}

const post = (path: string) => ({ method: 'POST', path, body: { n: 1 } }) as const;

const reference = { merchantId: 'm', intentId: 'i', subscriptionId: null, paymentMethodId: 'p' };
const charge = {
  key: 'charge:in_1:1',
  gatewayChargeId: null,
  gatewayMethodId: 'pm_1',
  amountMinor: 100,
  currency: 'USD',
  reference,
};

describe('one HTTP exchange', () => {
  it('is not sent when no server listens [D-32]', async () => {
    const { exchange, server, url } = await start(() => undefined);
    server.close();
    await once(server, 'close');
    expect(await exchange.send(post('/'))).toMatchObject({ kind: 'not_sent' });
    const client = createSandboxClient({ url, publicUrl: url, apiKey: 'key' });
    expect((await client.charge(charge)).kind).toBe('not_sent');
    expect((await client.lookup(charge)).kind).toBe('unknown');
    expect((await client.saveMethod({ key: 'k', token: 't', session: 's' })).kind).toBe('unknown');
    await client.close();
  });

  it('is not sent when the host name does not resolve [D-32]', async () => {
    const url = 'http://gateway.invalid:1';
    const exchange = createExchange({ url, bearer: 'key', timeoutMs: 30_000, connections: 1 });
    expect(await exchange.send(post('/'))).toMatchObject({ kind: 'not_sent' });
    await exchange.close();
  });

  it('ends as broken and is not sent again when the connection closes before the answer [D-32]', async () => {
    const { arrived, exchange } = await start((request, response) => {
      if (request.url === '/ok') response.end('{}');
      else request.socket.destroy();
    });
    // HTTP clients often retry by themselves on a connection that has served a request.
    expect(await exchange.send(post('/ok'))).toEqual({ kind: 'answered', status: 200, body: {} });
    expect(await exchange.send(post('/cut'))).toMatchObject({ kind: 'broken' });
    expect(await exchange.send({ method: 'GET', path: '/look' })).toMatchObject({ kind: 'broken' });
    expect(arrived).toEqual(['POST /ok', 'POST /cut', 'GET /look']);
  });

  it('ends as broken when the answer is incomplete [D-32]', async () => {
    const { exchange } = await start((request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{"charge"', () => request.socket.destroy());
    });
    expect(await exchange.send(post('/'))).toMatchObject({ kind: 'broken' });
  });

  it('ends as broken when no answer arrives before the deadline [D-32]', async () => {
    const { arrived, exchange } = await start(
      (request, response) => {
        if (request.url === '/open') response.end('{}');
      },
      { timeoutMs: 500 },
    );
    // On an open connection the request leaves at once, so the deadline cannot pass before.
    await expect.poll(async () => (await exchange.send(post('/open'))).kind).toBe('answered');
    expect(await exchange.send(post('/slow'))).toEqual({
      kind: 'broken',
      reason: 'no answer within 500 ms',
    });
    await expect
      .poll(() => arrived.filter((request) => request !== 'POST /open'))
      .toEqual(['POST /slow']);
  });

  it.each([
    ['an HTML page of a proxy', 404, 'text/html', '<h1>Not found</h1>'],
    ['a JSON error of a proxy', 403, 'application/json', '{"message":"blocked"}'],
    ['a 500', 500, 'application/json', '{"error":"internal_error"}'],
    ['a 200 without a valid charge', 200, 'application/json', '{"charge":{"outcome":"succeeded"}}'],
    ['an empty 200', 200, 'application/json', ''],
  ])('leaves the outcome of a charge unknown after %s [D-32]', async (_, status, type, body) => {
    const { url } = await start((_request, response) => {
      response.writeHead(status, { 'content-type': type }).end(body);
    });
    const client = createSandboxClient({ url, publicUrl: url, apiKey: 'key' });
    expect((await client.charge(charge)).kind).toBe('unknown');
    expect((await client.lookup(charge)).kind).toBe('unknown');
    await client.close();
  });
});
