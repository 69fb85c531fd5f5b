import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

export interface WantedPort {
  readonly port: number;
  /** What would listen there, for the message. */
  readonly purpose: string;
  /** The variable that moves it. */
  readonly variable: string;
}

/** Ports that something else holds; the message names each and the variable that moves it. */
class PortTakenError extends Error {
  override readonly name = 'PortTakenError';

  constructor(taken: readonly WantedPort[]) {
    const lines = taken.map(
      ({ port, purpose, variable }) =>
        `  port ${port} (${purpose}) is taken: set ${variable} to a free one, or stop what listens there`,
    );
    super(['Cannot start: something else listens where this would.', ...lines].join('\n'));
  }
}

/**
 * Checks that every port is free on `host`.
 *
 * @throws PortTakenError naming all that are not.
 */
export async function requireFreePorts(host: string, wanted: readonly WantedPort[]): Promise<void> {
  const taken: WantedPort[] = [];
  for (const want of wanted) {
    if (!(await isFree(host, want.port))) taken.push(want);
  }
  if (taken.length > 0) throw new PortTakenError(taken);
}

/** True when nothing listens on `port` of `host`. */
async function isFree(host: string, port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/**
 * A port on 127.0.0.1 that was free a moment ago, below those the system gives to outgoing
 * connections: with one of these, the caller's own clients might take it before the server does.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries += 1) {
    const port = randomInt(15_000, 32_000);
    if (await isFree('127.0.0.1', port)) return port;
  }
  throw new Error('No free port on 127.0.0.1');
}
