import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** One request. The body is not read yet: each handler reads the body with its own limit. */
export interface Call {
  readonly request: IncomingMessage;
  readonly url: URL;
}

export interface GatewayAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A reply that makes the server close the connection without an answer. */
export const LOST = 'lost';

export type Reply = GatewayAnswer | typeof LOST;

export type Handler = (call: Call) => Promise<Reply>;

/** Who may call a route: anyone, a caller with the gateway key, or such a caller on this machine. */
export type Access = 'public' | 'key' | 'key_on_loopback';

export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly access: Access;
  readonly handle: Handler;
}

export class RequestRefused extends Error {
  override readonly name = 'RequestRefused';
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Forbids a browser to store or frame an answer, to guess its type and to send a referrer. */
const SECURITY_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=()',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'x-robots-tag': 'noindex, nofollow',
};

export function json(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): GatewayAnswer {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  };
}

export function refusal(error: RequestRefused): GatewayAnswer {
  return json(error.status, { error: error.code, message: error.message });
}

export function writeAnswer(response: ServerResponse, answer: Reply): void {
  if (answer === LOST) {
    response.destroy();
    return;
  }
  const hasUnreadBody = !response.req.complete;
  response.writeHead(answer.status, {
    ...SECURITY_HEADERS,
    ...answer.headers,
    'content-length': String(Buffer.byteLength(answer.body)),
    // On an open connection, the unread rest of a refused body would be parsed as the next request.
    ...(hasUnreadBody ? { connection: 'close' } : {}),
  });
  endAnswer(response, answer.body);
}

/** Time in ms without progress after which a client that does not read its answer is disconnected. */
const WRITE_TIMEOUT_MS = 15_000;

/** Sends the rest of an answer. Disconnects a client that does not read it. */
export function endAnswer(response: ServerResponse, body: string | Buffer): void {
  response.end(body);
  // Node replaces this time-out when the answer is sent.
  response.setTimeout(WRITE_TIMEOUT_MS, () => response.destroy());
}

/** Refuses a body longer than `limitBytes` with 413. The server's `requestTimeout` limits the time. */
export async function readText(request: IncomingMessage, limitBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limitBytes) {
      throw new RequestRefused(413, 'body_too_large', `A body holds at most ${limitBytes} bytes.`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Refuses a content type other than `expected` with 415. Ignores parameters such as a charset. */
export function expectContentType(request: IncomingMessage, expected: string): void {
  const given = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  if (given !== expected) {
    throw new RequestRefused(415, 'content_type_wrong', `The body must be ${expected}.`);
  }
}

/** Longest accepted JSON body. Our requests have a few hundred bytes. */
const JSON_LIMIT_BYTES = 16_384;

export async function readJson(request: IncomingMessage): Promise<Record<string, unknown>> {
  expectContentType(request, 'application/json');
  const text = await readText(request, JSON_LIMIT_BYTES);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new RequestRefused(400, 'body_unreadable', 'The body must be a JSON object.');
  }
  return value as Record<string, unknown>;
}

export function expectLoopback(request: IncomingMessage): void {
  const address = (request.socket.remoteAddress ?? '').replace(/^::ffff:/, '');
  if (address !== '::1' && !/^127\.\d+\.\d+\.\d+$/.test(address)) {
    throw new RequestRefused(403, 'loopback_only', 'This route is open on this machine only.');
  }
}

/** Refuses a request without its bearer token with 401. The compared digests reveal nothing about the key. */
export function expectKey(request: IncomingMessage, key: string, name: string): void {
  const [scheme, given] = (request.headers.authorization ?? '').split(' ', 2);
  const isKey = given !== undefined && timingSafeEqual(digest(given), digest(key));
  if (scheme?.toLowerCase() !== 'bearer' || !isKey) {
    throw new RequestRefused(401, 'unauthorized', `The ${name} is missing or wrong.`);
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
