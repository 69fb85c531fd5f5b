import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { lasting } from '../../db/lasting-socket.ts';
import { makeCertificate } from '../support/certificate.ts';

let server: Server | undefined;
let socket: Socket | undefined;
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'perennial-socket-'));
});

afterEach(async () => {
  socket?.destroy();
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)));
});

afterAll(() => rmSync(folder, { recursive: true }));

const KINDS = ['TCP', 'TLS'] as const;

/** Opens a socket to a server that answers only the text `question`. */
async function connected(kind: (typeof KINDS)[number], silenceMsMax: number): Promise<Socket> {
  const answer = (peer: Socket) => {
    peer.on('error', () => undefined);
    peer.on('data', (text) => text.toString() === 'question' && peer.write('answer'));
  };
  const { cert, key } = makeCertificate(folder, 'localhost');
  const ca = readFileSync(cert);
  server =
    kind === 'TCP'
      ? createServer(answer)
      : createTlsServer({ cert: ca, key: readFileSync(key) }, answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const plain = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(plain, 'connect');
  if (kind === 'TCP') return (socket = lasting(plain, silenceMsMax));
  const secure = connectTls({ socket: plain, ca, servername: 'localhost' });
  await once(secure, 'secureConnect');
  return (socket = lasting(secure, silenceMsMax));
}

test.for(KINDS)(
  'a %s socket is destroyed with ETIMEDOUT when the server does not answer in time',
  async (kind) => {
    const silent = await connected(kind, 50);
    silent.on('data', () => expect.fail('there is no answer'));
    silent.write('a text without an answer');
    const [error] = (await once(silent, 'error').catch((thrown: unknown) => [thrown])) as [unknown];
    expect(error).toMatchObject({ code: 'ETIMEDOUT', message: 'Postgres does not answer' });
    expect(silent.destroyed).toBe(true);
  },
);

test.for(KINDS)(
  'a %s socket stays open for any idle time when no answer is outstanding',
  async (kind) => {
    const quiet = await connected(kind, 10_000);
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
  },
);
