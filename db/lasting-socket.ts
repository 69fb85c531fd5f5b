import { Socket } from 'node:net';

/**
 * Time between the error and the close of a lost connection. A transaction needs less time to notice
 * the error and to stop.
 */
const LINGER_MS = 100;
/** Longer than the server's `statement_timeout` of 15 s. */
const SILENCE_MS_MAX = 20_000;

/**
 * A socket to Postgres that reports a lost connection in two steps: the error at once, and the close
 * after 100 ms. After the close the driver has no socket. If a transaction rolls back then, the write
 * throws and ends the process (porsager/postgres#1208). Between the two steps the rollback writes to a
 * destroyed socket, which is harmless.
 *
 * The socket also fails when sent data has no answer for `silenceMsMax`. If the server's machine is
 * down, the operating system would wait about 15 minutes. This check does not work with TLS, because
 * the TLS layer reads the data.
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

/** Adds an error code of a lost connection: callers use it to tell an outage from a bug. */
function connectionError(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}
