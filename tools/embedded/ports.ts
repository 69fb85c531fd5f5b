import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

export interface WantedPort {
  readonly port: number;
  /** The service that needs the port, for the error message. */
  readonly purpose: string;
  readonly variable: string;
}

/**
 * Other processes use some of the wanted ports. The message names each port and the variable that changes it.
 */
class PortTakenError extends Error {
  override readonly name = 'PortTakenError';

  constructor(taken: readonly WantedPort[]) {
    const lines = taken.map(
      ({ port, purpose, variable }) =>
        `  port ${port} (${purpose}) is taken: set ${variable} to a free port, or stop the other process`,
    );
    super(['Cannot start: other processes use the ports.', ...lines].join('\n'));
  }
}

/**
 * Checks that every port is free on `host`.
 *
 * @throws PortTakenError with all ports that are not free.
 */
export async function requireFreePorts(host: string, wanted: readonly WantedPort[]): Promise<void> {
  const taken: WantedPort[] = [];
  for (const want of wanted) {
    if (!(await isFree(host, want.port))) taken.push(want);
  }
  if (taken.length > 0) throw new PortTakenError(taken);
}

/** True when nothing listens on `port` of `host`. */
export async function isFree(host: string, port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/**
 * Finds a free port on 127.0.0.1, below the range that the system uses for outgoing connections. A port in
 * that range could be taken by an outgoing connection before the caller's server listens on it.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries += 1) {
    const port = randomInt(15_000, 32_000);
    if (await isFree('127.0.0.1', port)) return port;
  }
  throw new Error('No free port on 127.0.0.1');
}

/** Returns the host for a URL. The wildcard address 0.0.0.0 becomes 127.0.0.1. */
export function visitable(host: string): string {
  return host === '0.0.0.0' ? '127.0.0.1' : host;
}
