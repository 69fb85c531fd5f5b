import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

export interface WantedPort {
  readonly port: number;
  readonly purpose: string;
  readonly variable: string;
}

/** The message names each taken port and the variable that changes it. */
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

export async function requireFreePorts(host: string, wanted: readonly WantedPort[]): Promise<void> {
  const taken: WantedPort[] = [];
  for (const want of wanted) {
    if (!(await isFree(host, want.port))) taken.push(want);
  }
  if (taken.length > 0) throw new PortTakenError(taken);
}

export async function isFree(host: string, port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** A port below the range of outgoing connections, one of which could take it before the caller listens. */
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
