import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * Time in ms for which a server of tests and demos keeps an idle connection, as `api/main.ts` does. With Node's default
 * of 5 s, a slow test would send requests on connections that the server has closed.
 */
export const KEEP_ALIVE_MS = 65_000;

/** Starts a server on `port` of the loopback address, or else on a free port. `close` also ends open connections. */
export async function listen(server: Server, port = 0) {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async (): Promise<void> => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
