import { createServer } from 'node:http';
import type { Logger } from './logger.ts';
import { within } from './time-limit.ts';

export interface ProbeOptions {
  readonly host: string;
  /** Undefined: no server. */
  readonly port: number | undefined;
  /** The parts of the page `/metrics`. A part that fails or takes 4 s is left out, and logged. */
  readonly pages: readonly (() => Promise<string>)[];
  /** Rejects if the database accepts no writes. */
  readonly checkDatabase: () => Promise<void>;
  /** Further facts for `/status`. */
  readonly status: () => object;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
}

export interface Probes {
  /** The database is migrated, and the process serves. */
  ready(): void;
  /** From now on `/ready` answers 503. */
  drain(): void;
  close(): void;
}

const PAGE_WITHIN_MS = 4_000;
const DATABASE_WITHIN_MS = 2_000;

/**
 * Serves `/metrics`, and the probes of an orchestrator: `/live` (the event loop turns), `/ready` (migrated, database
 * writable, not draining; 503 with the reason) and `/status`. None depends on Temporal.
 */
export function startProbes(options: ProbeOptions): Probes {
  const { logger } = options;
  let state: 'starting' | 'ready' | 'draining' = 'starting';
  const unready = async (): Promise<string | null> => {
    if (state !== 'ready') return state;
    return within(DATABASE_WITHIN_MS, options.checkDatabase()).then(
      () => null,
      () => 'the database accepts no writes',
    );
  };
  const page = async (part: () => Promise<string>): Promise<string> => {
    try {
      return await within(PAGE_WITHIN_MS, part());
    } catch (error) {
      logger.warn({ error: error instanceof Error ? error.message : String(error) }, 'no metrics');
      return '';
    }
  };
  const routes: Record<string, () => Promise<{ status?: number; type?: string; text: string }>> = {
    '/live': async () => ({ text: 'live\n' }),
    '/ready': async () => {
      const reason = await unready();
      return reason === null ? { text: 'ready\n' } : { status: 503, text: `${reason}\n` };
    },
    '/status': async () => ({
      type: 'application/json',
      text: JSON.stringify({ state, notReady: await unready(), ...options.status() }),
    }),
    '/metrics': async () => ({
      type: 'text/plain; version=0.0.4; charset=utf-8',
      text: (await Promise.all(options.pages.map(page))).join('\n'),
    }),
  };
  const server = createServer((request, response) => {
    const serve = routes[(request.url ?? '').split('?')[0] ?? ''];
    if (serve === undefined) {
      response.writeHead(404).end();
      return;
    }
    void serve().then(({ status = 200, type = 'text/plain', text }) =>
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text),
    );
  });
  const { host, port } = options;
  if (port !== undefined) {
    // The process does its work also if another one has the port.
    server.on('error', (error) => logger.warn({ error: error.message, port }, 'no metrics'));
    server.listen(port, host, () => logger.info({ host, port }, 'metrics'));
  }
  return {
    ready: () => void (state = 'ready'),
    drain: () => void (state = 'draining'),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
