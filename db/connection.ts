import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, isIP, Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { ConnectionOptions } from 'node:tls';
import postgres from 'postgres';
import { connectionError, lasting } from './lasting-socket.ts';

type Settings = postgres.Options<Record<string, never>>;

/** Asks a Postgres server for TLS. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
/** Time limit in ms of a connection with TLS, as `connect_timeout` without. */
const TLS_WITHIN_MS = 5_000;
const VERIFIES_NOTHING = { rejectUnauthorized: false };
const VERIFIES_NO_HOST = { checkServerIdentity: () => undefined };

/**
 * Opens a pool of the driver, with our time limits also in TLS; a statement may take `silenceMsMax` ms, by default 20 s.
 * `sslmode` has the meaning that libpq gives it; without it there is no TLS. Throws if the URL asks for more.
 */
export function openDriver(
  databaseUrl: string,
  settings: Settings,
  silenceMsMax?: number,
): postgres.Sql {
  const { url, tls } = readUrl(databaseUrl);
  const socket = ({ host: [name = ''], port: [port = 5432], path }: Place) => {
    const keep = (opened: Socket) => lasting(opened, silenceMsMax);
    if (path) return keep(new Socket()).connect(path);
    return tls ? openTls(name, port, tls, keep) : keep(new Socket()).connect(port, name);
  };
  // The driver's types do not declare the option `socket`.
  return postgres(url, { ...settings, ssl: false, socket } as Settings);
}

interface Place {
  readonly host: readonly string[];
  readonly port: readonly number[];
  readonly path?: string;
}

function readUrl(databaseUrl: string): { url: string; tls: ConnectionOptions | undefined } {
  const url = new URL(databaseUrl);
  const [mode = 'disable', path] = ['sslmode', 'sslrootcert'].map(
    (name) => url.searchParams.get(name) ?? undefined,
  );
  // `openDriver` tries only the first host: while it is down, every statement would wait for ever.
  if (url.hostname.includes(',')) throw new Error('DATABASE_URL: name one host');
  // These two would give a connection without TLS.
  if (url.searchParams.has('ssl')) throw new Error('DATABASE_URL: set sslmode instead of ssl');
  if (path && mode === 'disable') throw new Error('DATABASE_URL: sslrootcert needs an sslmode');
  for (const name of ['sslmode', 'sslrootcert']) url.searchParams.delete(name);
  const ca = path ? { ca: readFileSync(path) } : {};
  const modes: Record<string, ConnectionOptions | undefined> = {
    disable: undefined,
    require: path ? { ...ca, ...VERIFIES_NO_HOST } : VERIFIES_NOTHING,
    'verify-ca': { ...ca, ...VERIFIES_NO_HOST },
    'verify-full': ca,
  };
  if (mode in modes) return { url: url.href, tls: modes[mode] };
  throw new Error(`DATABASE_URL: sslmode must be one of ${Object.keys(modes).join(', ')}`);
}

/** Never rejects, because the driver would lose the connection's place in its pool. The socket has the error. */
async function openTls(
  host: string,
  port: number,
  tls: ConnectionOptions,
  keep: (opened: Socket) => Socket,
): Promise<Socket> {
  const plain = connect(port, host).on('error', () => undefined);
  const signal = AbortSignal.timeout(TLS_WITHIN_MS);
  try {
    await once(plain, 'connect', { signal });
    plain.write(SSL_REQUEST);
    const [answer] = (await once(plain, 'data', { signal })) as [Buffer];
    if (answer.toString() !== 'S') throw new Error('Postgres does not offer TLS');
    const name = isIP(host) ? {} : { servername: host };
    const secure = keep(connectTls({ ...tls, ...name, host, socket: plain }));
    await once(secure, 'secureConnect', { signal });
    return secure;
  } catch (error) {
    plain.destroy();
    const failed = lasting(new Socket());
    const late = connectionError('Postgres does not answer', 'ETIMEDOUT');
    setImmediate(() => failed.destroy(signal.aborted ? late : (error as Error)));
    return failed;
  }
}
