import { Socket } from 'node:net';

/**
 * Time in ms from the error to the close of a lost connection, long enough for the rollbacks of its failed
 * transactions.
 */
const LINGER_MS = 100;
/** Maximum time in ms without an answer. Longer than the server's `statement_timeout` of 15 s. */
const SILENCE_MS_MAX = 20_000;

/**
 * Emits `error` when the connection is lost, and `close` 100 ms later, because a rollback after `close` ends the
 * process (porsager/postgres#1208). Without TLS, fails after `silenceMsMax` without an answer.
 */
export class LastingSocket extends Socket {
  private answeredBytes = 0;

  constructor(silenceMsMax: number = SILENCE_MS_MAX) {
    super();
    // Node restarts this timer at each byte sent or received.
    this.setTimeout(silenceMsMax);
  }

  override emit(event: string | symbol, ...args: unknown[]): boolean {
    if (event === 'data') this.answeredBytes = this.bytesWritten;
    if (event === 'timeout' && this.isUnanswered) {
      this.destroy(connectionError('Postgres does not answer', 'ETIMEDOUT'));
    }
    if (event !== 'close') return super.emit(event, ...args);
    const connectionLost = connectionError('Postgres closed the connection', 'ECONNRESET');
    if (this.listenerCount('error') > 0) super.emit('error', connectionLost);
    setTimeout(() => super.emit('close', ...args), LINGER_MS);
    return true;
  }

  private get isUnanswered(): boolean {
    const isReadHere = this.listenerCount('data') > 0;
    return isReadHere && this.bytesWritten > this.answeredBytes;
  }
}

/** Returns an error with the code of a lost connection. Callers tell an outage from a bug by this code. */
function connectionError(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}
