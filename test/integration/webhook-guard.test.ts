import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createWebhookSender } from '../../activities/webhooks/sender.ts';
import { createGuardedRequest } from '../../runtime/webhook-address.ts';
import { startWebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';
import type { WebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';

let receiver: WebhookReceiver;
let port: string;

beforeAll(async () => {
  receiver = await startWebhookReceiver({ secrets: [] });
  port = new URL(receiver.url).port;
});
afterAll(() => receiver.close());

const statusThrough = async (resolver: Resolver, host: string) => {
  const begin = createGuardedRequest({ allowLoopback: true }, () => resolver);
  const request = begin(`http://${host}:${port}/`, { method: 'POST' }).end('{}');
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  answer.resume();
  return answer.statusCode;
};

/**
 * Spellings of a loopback address; `0` is 0.0.0.0, which also reaches this machine. Names go through DNS,
 * literal addresses do not.
 */
const SPELLINGS = ['localhost', '127.0.0.1', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', '0'];

/**
 * A name server that knows the IPv4 addresses of these names, and no other name. It ignores questions about `silent`,
 * and those about IPv6 addresses of `half`.
 */
async function startNameServer(addresses: Readonly<Record<string, string>>, timeout = 100) {
  const socket = createSocket('udp4');
  socket.on('message', (query, { address, port: from }) => {
    const labels: string[] = [];
    for (let at = 12; query[at]; at += query[at]! + 1) {
      labels.push(query.toString('latin1', at + 1, at + 1 + query[at]!));
    }
    const host = labels.join('.');
    if (host === 'silent.test') return;
    const type = query.readUInt16BE(query.indexOf(0, 12) + 1);
    if (host === 'half.test' && type !== 1) return;
    const found = type === 1 ? addresses[host] : undefined;
    const question = query.subarray(12, query.indexOf(0, 12) + 5);
    const head = Buffer.from([
      0x81,
      host in addresses ? 0x80 : 0x83,
      0,
      1,
      0,
      found ? 1 : 0,
      0,
      0,
      0,
      0,
    ]);
    const record = found
      ? Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, ...found.split('.').map(Number)])
      : Buffer.alloc(0);
    socket.send(Buffer.concat([query.subarray(0, 2), head, question, record]), from, address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  const resolver = new Resolver({ timeout, tries: 1 });
  resolver.setServers([`127.0.0.1:${socket.address().port}`]);
  return { resolver, close: () => socket.close() };
}

describe('a guarded request', () => {
  it('asks the name servers, and waits for none longer than it must [D-55]', async () => {
    const names = await startNameServer({ 'shop.test': '127.0.0.1', 'inside.test': '10.0.0.1' });
    expect(await statusThrough(names.resolver, 'shop.test')).toBe(200);
    const before = receiver.received.length;
    const refusalOf = (host: string) =>
      statusThrough(names.resolver, host).catch((error: { code: string }) => error.code);
    expect(await refusalOf('inside.test')).toBe('EBLOCKED');
    expect(await refusalOf('unknown.test')).toBe('ENOTFOUND');
    expect(await refusalOf('silent.test')).toBe('ETIMEOUT');
    expect(receiver.received).toHaveLength(before);
    names.close();
  });

  it('connects when the name servers do not answer the question about IPv6 addresses [D-54]', async () => {
    const names = await startNameServer({ 'half.test': '127.0.0.1' }, 60_000);
    expect(await statusThrough(names.resolver, 'half.test')).toBe(200);
    names.resolver.cancel();
    names.close();
  });
});

describe('the webhook sender', () => {
  const send = (url: string, allowLoopback: boolean) =>
    createWebhookSender({ allowLoopback })({
      merchantId: 'mer_a',
      url,
      headers: {},
      body: Buffer.from('{}'),
    });

  it.each(SPELLINGS)('refuses %s in production before anything is sent [D-55]', async (host) => {
    const before = receiver.received.length;
    expect(await send(`https://${host}:${port}/`, false)).toMatchObject({
      kind: 'failed',
      error: 'refused_address',
    });
    expect(receiver.received).toHaveLength(before);
  });

  it.each(['localhost', '127.0.0.1'])(
    'reaches %s where development allows loopback [D-55]',
    async (host) => {
      expect(await send(`http://${host}:${port}/`, true)).toMatchObject({ status: 200 });
    },
  );

  it('gives up an endpoint that does not finish the TLS handshake before the limit of an answer [D-54]', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const never = new AbortController();
    const limit = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(never.signal);
    const url = `https://127.0.0.1:${(silent.address() as AddressInfo).port}/`;
    expect(await send(url, true)).toMatchObject({ kind: 'failed', error: 'timeout' });
    limit.mockRestore();
    silent.close();
  });

  it('sends nothing when the endpoint’s URL is not allowed any more [D-55]', async () => {
    const before = receiver.received.length;
    expect(await send(receiver.url, false)).toEqual({
      kind: 'failed',
      error: 'refused_address',
      durationMs: expect.any(Number) as number,
    });
    expect(await send(`https://127.0.0.1:${port}/`, false)).toEqual({
      kind: 'failed',
      error: 'refused_address',
      durationMs: expect.any(Number) as number,
    });
    expect(receiver.received).toHaveLength(before);
  });

  it('reports the error code when the connection fails [D-54]', async () => {
    receiver.answerNext('close');
    expect(await send(receiver.url, true)).toEqual({
      kind: 'failed',
      error: 'reset',
      durationMs: expect.any(Number) as number,
    });
    const closed = await startWebhookReceiver({ secrets: [] });
    await closed.close();
    expect(await send(closed.url, true)).toEqual({
      kind: 'failed',
      error: 'connect',
      durationMs: expect.any(Number) as number,
    });
  });

  it('sends again when the endpoint has closed the kept connection [D-54]', async () => {
    const raw = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';
    const sendTo = createWebhookSender({ allowLoopback: true });
    const webhook = {
      merchantId: 'mer_a',
      url: receiver.url,
      headers: {},
      body: Buffer.from('{}'),
    };
    for (let n = 0; n < 20; n += 1) {
      receiver.answerNext({ status: 200, raw });
      expect(await sendTo(webhook)).toMatchObject({ kind: 'answered', status: 200 });
    }
  });

  it('ends with the status 101 when the endpoint switches the protocol [D-54]', async () => {
    const raw = 'HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n';
    receiver.answerNext({ status: 101, raw });
    expect(await send(receiver.url, true)).toMatchObject({ kind: 'answered', status: 101 });
  });

  it('waits 15 s for an answer and no longer [D-54]', async () => {
    // The clock of this signal runs 150 times as fast.
    const { timeout } = AbortSignal;
    const limit = vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => timeout(ms / 150));
    receiver.answerNext('hang');
    const error = 'timeout';
    const durationMs = expect.any(Number) as number;
    expect(await send(receiver.url, true)).toEqual({ kind: 'failed', error, durationMs });
    expect(limit.mock.calls).toEqual([[15_000]]);
    limit.mockRestore();
  });
});
