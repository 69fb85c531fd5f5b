import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

export interface WantedPort {
  readonly port: number;
  readonly purpose: string;
  readonly variable: string;
}

/** The error names each taken port and the variable that changes it. */
export async function requireFreePorts(host: string, wanted: readonly WantedPort[]): Promise<void> {
  const taken: string[] = [];
  for (const { port, purpose, variable } of wanted) {
    if (await isFree(host, port)) continue;
    taken.push(
      `  port ${port} (${purpose}) is taken: set ${variable} to a free port, or stop the other process`,
    );
  }
  if (taken.length === 0) return;
  throw new Error(['Cannot start: other processes use the ports.', ...taken].join('\n'));
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
