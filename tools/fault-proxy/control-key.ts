import type { IncomingMessage } from 'node:http';
import type { Fields } from '../../gateways/http-server/fields.ts';
import { expectKey, expectLoopback, json, readJson } from '../../gateways/http-server/http.ts';
import type { Route } from '../../gateways/http-server/http.ts';

/** Refuses a request that comes from another machine or has another key. */
export function expectControlKey(request: IncomingMessage, key: string): void {
  expectLoopback(request);
  expectKey(request, key, 'control key');
}

/** Answers 200 with what `handle` returns, or with an empty object. `fields`: the body of a POST. */
export function controlRoute(
  method: Route['method'],
  path: string,
  handle: (fields: Fields, url: URL) => unknown,
): Route {
  return {
    method,
    path: `/control/${path}`,
    access: 'key_on_loopback',
    handle: async ({ request, url }) =>
      json(200, (await handle(method === 'POST' ? await readJson(request) : {}, url)) ?? {}),
  };
}
