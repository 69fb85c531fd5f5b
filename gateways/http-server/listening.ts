import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The address on which a server listens. Default: any free port of 127.0.0.1. */
export interface ListenOptions {
  readonly host?: string;
  readonly port?: number;
}

/** Time limit in ms for a client to send the headers, and to send the whole request. */
const REQUEST_TIMEOUT_MS = 15_000;

/** Idle timeout of a connection, in ms. The clients close connections first, after a shorter one. */
const KEEP_ALIVE_MS = 65_000;

const CLOSE_GRACE_MS = 3_000;

/** Sets the server's time limits, makes it listen, and returns its origin. Rejects if the port is in use. */
export async function listen(server: Server, { host, port }: ListenOptions): Promise<string> {
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.headersTimeout = REQUEST_TIMEOUT_MS;
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.listen(port ?? 0, host ?? '127.0.0.1');
  await once(server, 'listening');
  const { address, family, port: used } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${used}`;
}

/** Refuses new requests, waits at most 3 s for running ones, and closes all connections. */
export async function stop(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS);
  await closed;
  clearTimeout(cut);
}
