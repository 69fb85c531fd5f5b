import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Context } from '../context.ts';

interface DiscardLimits {
  readonly bytes: number;
  readonly ms: number;
}

/** Limits before the answer. A refused body is usually shorter, so its connection is kept. */
const BEFORE_ANSWER: DiscardLimits = { bytes: 1_048_576, ms: 500 };
/** Limits after an answer that closes the connection. */
const AFTER_ANSWER: DiscardLimits = { bytes: 32 * 1_048_576, ms: 3_000 };

/**
 * Discards an unread body, behind which the next request would wait: up to 1 MB and 500 ms before the answer, else 32
 * MB and 3 s after an answer that closes the connection.
 */
export function unreadBody() {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    await next();
    if (await hasEnded(ctx.req)) return;
    ctx.set('Connection', 'close');
    closeAfterBody(ctx.req);
  };
}

async function hasEnded(request: IncomingMessage): Promise<boolean> {
  const announced = Number(request.headers['content-length'] ?? 0);
  if (!request.complete && announced > BEFORE_ANSWER.bytes) return false;
  return discardBody(request, BEFORE_ANSWER);
}

/** Discards the body before the socket closes. Node calls `destroySoon` after a connection's last answer. */
function closeAfterBody(request: IncomingMessage): void {
  const { socket } = request;
  socket.destroySoon = () => {
    socket.end();
    void discardBody(request, AFTER_ANSWER).then(() => Socket.prototype.destroySoon.call(socket));
  };
}

/** Returns whether the body ended within the limits. Does not throw, even if the connection is lost. */
function discardBody(request: IncomingMessage, limits: DiscardLimits): Promise<boolean> {
  // A refused body is paused. A paused body blocks its connection, even if it has arrived completely.
  request.resume();
  if (request.complete || request.destroyed) return Promise.resolve(request.complete);
  return new Promise((resolve) => {
    let bytes = 0;
    const count = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > limits.bytes) stop();
    };
    const stop = (): void => {
      clearTimeout(timer);
      request.off('data', count).off('end', stop).off('close', stop);
      resolve(request.complete);
    };
    const timer = setTimeout(stop, limits.ms);
    request.on('data', count).on('end', stop).on('close', stop);
  });
}
