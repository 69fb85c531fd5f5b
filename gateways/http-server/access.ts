import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { RequestRefused } from './http.ts';

/** Refuses a request from another machine with 403. */
export function expectLoopback(request: IncomingMessage): void {
  const address = (request.socket.remoteAddress ?? '').replace(/^::ffff:/, '');
  if (address !== '::1' && !/^127\.\d+\.\d+\.\d+$/.test(address)) {
    throw new RequestRefused(403, 'loopback_only', 'This route is open on this machine only.');
  }
}

/**
 * Refuses a request without `key` as its bearer token with 401. `name` is the key's name in the message. Compares
 * digests, so that the duration reveals nothing about the key.
 */
export function expectKey(request: IncomingMessage, key: string, name: string): void {
  const [scheme, given] = (request.headers.authorization ?? '').split(' ', 2);
  const isKey = given !== undefined && timingSafeEqual(digest(given), digest(key));
  if (scheme?.toLowerCase() !== 'bearer' || !isKey) {
    throw new RequestRefused(401, 'unauthorized', `The ${name} is missing or wrong.`);
  }
}

/** Refuses a request from another machine with 403, and a request without the control key with 401. */
export function expectControlKey(request: IncomingMessage, key: string): void {
  expectLoopback(request);
  expectKey(request, key, 'control key');
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
