import type { Socket } from 'node:net';

/**
 * Time in ms from the error to the close of a lost connection, long enough for the rollbacks of its failed
 * transactions.
 */
const LINGER_MS = 100;
/** Maximum time in ms without an answer. Longer than the server's `statement_timeout` of 15 s. */
const SILENCE_MS_MAX = 20_000;

/**
 * Makes the socket emit `error` when the connection is lost, and `close` 100 ms later, because a rollback after `close`
 * ends the process (porsager/postgres#1208). Fails after `silenceMsMax` without an answer. It replaces `emit`, because the
 * driver listens to `close` itself and has no setting for either: its `connect_timeout` ends with the connection, and
 * `idle_timeout` and `max_lifetime` wait for a running statement.
 */
export function lasting<Kind extends Socket>(socket: Kind, silenceMsMax = SILENCE_MS_MAX): Kind {
  const emit = socket.emit.bind(socket) as (event: string | symbol, ...args: unknown[]) => boolean;
  let answeredBytes = 0;
  const isUnanswered = (): boolean =>
    socket.listenerCount('data') > 0 && socket.bytesWritten > answeredBytes;
  // Node restarts this timer at each byte sent or received.
  socket.setTimeout(silenceMsMax);
  socket.emit = (event: string | symbol, ...args: unknown[]): boolean => {
    if (event === 'data') answeredBytes = socket.bytesWritten;
    if (event === 'timeout' && isUnanswered()) {
      socket.destroy(connectionError('Postgres does not answer', 'ETIMEDOUT'));
    }
    if (event !== 'close') return emit(event, ...args);
    const connectionLost = connectionError('Postgres closed the connection', 'ECONNRESET');
    if (socket.listenerCount('error') > 0) emit('error', connectionLost);
    setTimeout(() => emit('close', ...args), LINGER_MS);
    return true;
  };
  return socket;
}

/** Returns an error with the code of a lost connection. Callers tell an outage from a bug by this code. */
export function connectionError(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}
