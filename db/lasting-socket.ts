import { Socket } from 'node:net';

/** Longer than it takes a transaction to notice that its connection is gone and to give up. */
const LINGER_MS = 100;
/** Longer than the server lets any statement run. */
const SILENCE_MS_MAX = 20_000;

/**
 * A connection to Postgres that tells of its loss in two steps: an error at once, and its close a
 * moment later. The driver forgets the socket with the close, and a transaction that then rolls back
 * writes to nothing, which ends the whole process (porsager/postgres#1208). Between the two steps it
 * writes to a socket that takes no more, which is harmless.
 *
 * It is also lost when what was sent has no answer for `silenceMsMax`: a server whose machine is gone
 * says nothing, and the system would wait for it for a quarter of an hour. With TLS others read what
 * comes, and it cannot tell.
 */
export class LastingSocket extends Socket {
  private answeredBytes = 0;

  constructor(silenceMsMax: number = SILENCE_MS_MAX) {
    super();
    // Counted from the last byte in either direction, and anew with the next.
    this.setTimeout(silenceMsMax);
  }

  override emit(event: string | symbol, ...args: unknown[]): boolean {
    if (event === 'data') this.answeredBytes = this.bytesWritten;
    if (event === 'timeout' && this.isUnanswered) {
      this.destroy(lost('Postgres does not answer', 'ETIMEDOUT'));
    }
    if (event !== 'close') return super.emit(event, ...args);
    const hungUp = lost('Postgres hung up', 'ECONNRESET');
    if (this.listenerCount('error') > 0) super.emit('error', hungUp);
    setTimeout(() => super.emit('close', ...args), LINGER_MS);
    return true;
  }

  private get isUnanswered(): boolean {
    const isReadHere = this.listenerCount('data') > 0;
    return isReadHere && this.bytesWritten > this.answeredBytes;
  }
}

/** With the code of a lost connection: callers tell an outage from a bug by it. */
function lost(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}
