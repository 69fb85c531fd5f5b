import { createHmac } from 'node:crypto';
import { addAbortListener, once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { PingResult, SendError } from '../../domain/delivery-schedule.ts';
import { createGuardedRequest, endpointProblem } from '../../runtime/webhook-address.ts';
import type { AddressRules } from '../../runtime/webhook-address.ts';

export interface WebhookRequest {
  merchantId: string;
  url: string;
  headers: Record<string, string>;
  body: Buffer;
}

/**
 * The result of one attempt. `answer`: the beginning of the body, which may be stored; not of a redirect. `status`: of an
 * e-mail, the reply code of SMTP.
 */
export type AttemptResult =
  | {
      kind: 'answered';
      status: number;
      retryAfter: string | null;
      answer: string | null;
      error?: SendError;
      /** No further attempt will succeed. */
      isFinal?: boolean;
    }
  | { kind: 'failed'; error: SendError };
export type SendResult = { durationMs: number } & AttemptResult;

/** What the log and a ping tell of a request. */
export function toldOf(result: SendResult): PingResult {
  const { durationMs } = result;
  if (result.kind === 'failed') {
    return { httpStatus: null, error: result.error, durationMs, answer: null };
  }
  const { status: httpStatus, answer } = result;
  const error = result.error ?? (isRedirect(httpStatus) ? 'redirect' : null);
  return { httpStatus, error, durationMs, answer };
}

const TOTAL_TIMEOUT_MS = 15_000;
const ANSWER_LIMIT_BYTES = 64 * 1024;
/** Longest headers of an answer. Node's own limit is 16 kB. */
const HEADERS_LIMIT_BYTES = 64 * 1024;
/** Longest text that is kept of an answer. */
const ANSWER_MAX = 1_000;
/** Time limit in ms to read an answer's body, beyond which only its beginning counts. */
const ANSWER_BODY_TIMEOUT_MS = 1_000;

/** Posts one webhook within 15 s, without redirects. Never throws: a failure is a result. */
export function createWebhookSender(
  rules: AddressRules,
): (webhook: WebhookRequest) => Promise<SendResult> {
  const begin = createGuardedRequest(rules);

  const send = async (webhook: WebhookRequest, signal: AbortSignal) => {
    const { url, headers, body } = webhook;
    const request = begin(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'user-agent': 'perennial' },
      maxHeaderSize: HEADERS_LIMIT_BYTES,
      signal,
    });
    // The status alone decides. An error after it has no other listener.
    request.on('error', () => undefined).end(body);
    // Without a listener of `upgrade`, Node closes the connection of an answer 101 and reports no error.
    const answers = ['response', 'upgrade'].map((event) => once(request, event, { signal }));
    const [answer] = (await Promise.race(answers).catch((error: { code?: string }) => {
      // The endpoint may have closed the kept connection before this request reached it.
      if (request.reusedSocket && error.code === 'ECONNRESET') return [null];
      throw error;
    })) as [IncomingMessage | null];
    if (answer === null) return send(webhook, signal);
    const text = await bodyOf(answer);
    const status = answer.statusCode ?? 0;
    return {
      kind: 'answered' as const,
      status,
      retryAfter: answer.headers['retry-after'] ?? null,
      // The body of a redirect names its target.
      answer: isRedirect(status) || text === '' ? null : text,
    };
  };

  return async (webhook) => {
    const startedAt = performance.now();
    // The address rules may have become stricter since the configuration was stored.
    const result =
      endpointProblem(webhook.url, rules) === undefined
        ? await send(webhook, AbortSignal.timeout(TOTAL_TIMEOUT_MS)).catch((error: object) =>
            resultOf(error),
          )
        : resultOf({ code: 'EBLOCKED' });
    return { ...result, durationMs: Math.round(performance.now() - startedAt) };
  };
}

const isRedirect = (status: number): boolean => status >= 300 && status < 400;

/** Reads the body so that the connection can be reused. Returns its beginning. */
async function bodyOf(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  const late = AbortSignal.timeout(ANSWER_BODY_TIMEOUT_MS);
  addAbortListener(late, () => body.destroy());
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (length < ANSWER_MAX * UTF8_BYTES_MAX) chunks.push(chunk);
      length += chunk.length;
      if (length > ANSWER_LIMIT_BYTES) break;
    }
  } catch {
    // The status has arrived, and it alone decides.
  }
  return beginningOf(Buffer.concat(chunks).toString('utf8'));
}

/** Returns the first 1,000 characters of an answer, as a row can hold them: NUL becomes U+FFFD. */
export function beginningOf(text: string): string {
  // The cut must not divide a surrogate pair, which no row can hold.
  return Array.from(text.replaceAll('\0', '\uFFFD')).slice(0, ANSWER_MAX).join('');
}

const UTF8_BYTES_MAX = 4;

/** What each code of a failed request means, by its beginning. */
const SEND_ERRORS_BY_CODE: readonly (readonly [RegExp, SendError])[] = [
  [/^EBLOCKED/, 'refused_address'],
  [/^(ENOTFOUND|EAI_|EDNS)/, 'name'],
  [/^(ECONNRESET|EPIPE)/, 'reset'],
  [/^(ETIMEDOUT|ABORT_ERR)/, 'timeout'],
  [/^HPE_HEADER_OVERFLOW/, 'too_large'],
  [
    /^(ERR_TLS|ERR_SSL|ETLS|EPROTO|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|HOSTNAME_MISMATCH)/,
    'tls',
  ],
  [/^E[A-Z]+$/, 'connect'],
];

/** The line with the final status. */
const STATUS_LINE = /^HTTP\/\d\.\d ([2-5]\d\d)/m;

/** `rawPacket`: the bytes of an answer whose headers Node refuses. */
export function resultOf({
  code = '',
  rawPacket,
}: {
  code?: unknown;
  rawPacket?: Buffer;
}): AttemptResult {
  const status = STATUS_LINE.exec(rawPacket?.toString('latin1') ?? '')?.[1];
  if (status !== undefined) {
    return { kind: 'answered' as const, status: Number(status), retryAfter: null, answer: null };
  }
  const known = SEND_ERRORS_BY_CODE.find(([pattern]) => pattern.test(String(code)));
  return { kind: 'failed' as const, error: known?.[1] ?? 'invalid_answer' };
}

export interface WebhookToSign {
  eventId: string;
  /** Real time of this attempt, epoch milliseconds. */
  sentAt: number;
  /** The exact bytes that are sent. */
  body: Buffer;
  /** The present secret, then the previous one for 24 h after a change. */
  signers: readonly [string, ...string[]];
}

const BASE64_SECRET_PREFIX = 'whsec_';

/**
 * `webhook-signature` has a signature for each secret and covers the time, against replays. `xpay-signature` covers
 * only the body, with the present secret.
 */
export function signatureHeaders(webhook: WebhookToSign): Record<string, string> {
  const { eventId, body, signers } = webhook;
  const timestamp = String(Math.floor(webhook.sentAt / 1_000));
  const signed = Buffer.concat([Buffer.from(`${eventId}.${timestamp}.`), body]);
  return {
    'webhook-id': eventId,
    'webhook-timestamp': timestamp,
    'webhook-signature': signers.map((secret) => `v1,${standardMac(secret, signed)}`).join(' '),
    // The HMAC key is the whole secret as text, including `whsec_`; for `webhook-signature` the key is the
    // decoded part.
    'xpay-signature': createHmac('sha512', signers[0]).update(body).digest('base64'),
  };
}

/** Returns the HMAC-SHA256 of `signed`. Its key is the decoded Base64 after `whsec_`; without this prefix, `secret`. */
function standardMac(secret: string, signed: Buffer): string {
  const key = secret.startsWith(BASE64_SECRET_PREFIX)
    ? Buffer.from(secret.slice(BASE64_SECRET_PREFIX.length), 'base64')
    : secret;
  return createHmac('sha256', key).update(signed).digest('base64');
}
