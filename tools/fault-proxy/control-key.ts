import type { IncomingMessage } from 'node:http';
import { expectKey, expectLoopback } from '../../gateways/http-server/http.ts';

/** Refuses a request that comes from another machine or has another key. */
export function expectControlKey(request: IncomingMessage, key: string): void {
  expectLoopback(request);
  expectKey(request, key, 'control key');
}
