import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { RequestRefused } from './sandbox/http.ts';

/** Refuses a request from another machine with 403, and a request without the key with 401. */
export function expectControlKey(request: IncomingMessage, key: string): void {
  const address = (request.socket.remoteAddress ?? '').replace(/^::ffff:/, '');
  if (address !== '::1' && !address.startsWith('127.')) {
    throw new RequestRefused(403, 'loopback_only', 'This route is open on this machine only.');
  }
  const [scheme, given] = (request.headers.authorization ?? '').split(' ', 2);
  const isKey = given !== undefined && timingSafeEqual(digest(given), digest(key));
  if (scheme?.toLowerCase() !== 'bearer' || !isKey) {
    throw new RequestRefused(401, 'unauthorized', 'The control key is missing or wrong.');
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
