import { Socket } from 'node:net';

/** Longer than it takes a transaction to notice that its connection is gone and to give up. */
const LINGER_MS = 100;

/**
 * A connection to Postgres that tells of its loss in two steps: an error at once, and its close a
 * moment later. The driver forgets the socket with the close, and a transaction that then rolls back
 * writes to nothing, which ends the whole process (porsager/postgres#1208). Between the two steps it
 * writes to a socket that takes no more, which is harmless.
 */
export class LastingSocket extends Socket {
  override emit(event: string | symbol, ...args: unknown[]): boolean {
    if (event !== 'close') return super.emit(event, ...args);
    if (this.listenerCount('error') > 0) super.emit('error', hungUp());
    setTimeout(() => super.emit('close', ...args), LINGER_MS);
    return true;
  }
}

/** With the code of a lost connection: callers tell an outage from a bug by it. */
function hungUp(): Error {
  return Object.assign(new Error('Postgres hung up'), { code: 'ECONNRESET' });
}
