import { createHmac } from 'node:crypto';
import { Agent, request } from 'undici';
import { createGuardedConnector, endpointProblem } from '../../runtime/webhook-address.ts';
import type { AddressRules } from '../../runtime/webhook-address.ts';

export interface WebhookRequest {
  url: string;
  headers: Record<string, string>;
  body: Buffer;
}

/** The result of one attempt. `error` is a short text for the delivery's row, without secrets. */
export type SendResult =
  | { kind: 'answered'; status: number; retryAfter: string | null }
  | { kind: 'failed'; error: string };

const TOTAL_TIMEOUT_MS = 15_000;
const ANSWER_LIMIT_BYTES = 64 * 1024;
/** Time limit in ms to read an answer's body, which is read only so that the connection can be reused. */
const ANSWER_BODY_TIMEOUT_MS = 1_000;

/** Posts one webhook within 15 s, without redirects. Never throws: a failure is a result. */
export function createWebhookSender(
  rules: AddressRules,
): (webhook: WebhookRequest) => Promise<SendResult> {
  const agent = new Agent({ connect: createGuardedConnector(rules) });

  return async ({ url, headers, body }) => {
    // The address rules may have become stricter since the configuration was stored.
    const problem = endpointProblem(url, rules);
    if (problem !== undefined) return { kind: 'failed', error: `endpoint ${problem}` };
    try {
      const answer = await request(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', 'user-agent': 'perennial' },
        body,
        dispatcher: agent,
        signal: AbortSignal.timeout(TOTAL_TIMEOUT_MS),
      });
      const retryAfter = answer.headers['retry-after'];
      await answer.body
        .dump({ limit: ANSWER_LIMIT_BYTES, signal: AbortSignal.timeout(ANSWER_BODY_TIMEOUT_MS) })
        .catch(() => undefined);
      return {
        kind: 'answered',
        status: answer.statusCode,
        retryAfter: typeof retryAfter === 'string' ? retryAfter : null,
      };
    } catch (error) {
      return { kind: 'failed', error: describeFailure(error) };
    }
  };
}

function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if (error.name === 'TimeoutError') return `no answer within ${TOTAL_TIMEOUT_MS / 1_000} s`;
  const code = 'code' in error ? error.code : undefined;
  if (code === 'EBLOCKED') return 'the address is not public';
  return typeof code === 'string' ? code : error.name;
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
