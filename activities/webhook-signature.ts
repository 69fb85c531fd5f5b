import { createHmac } from 'node:crypto';

/** A webhook to sign, and the secrets that sign it. */
export interface WebhookToSign {
  eventId: string;
  /** Real time of this attempt, epoch milliseconds. */
  sentAt: number;
  /** The exact bytes that are sent. */
  body: Buffer;
  signer: string;
  /** The secret before the last change, while receivers may know only that one; else null. */
  previousSigner: string | null;
}

const BASE64_SECRET_PREFIX = 'whsec_';

/**
 * Headers that prove the origin of a webhook. The three Standard Webhooks headers carry a signature for
 * the present secret and one for the previous secret. `xpay-signature` uses the present secret alone. Only
 * the Standard Webhooks signature covers the timestamp and so resists replay. Rule: D-53.
 */
export function signatureHeaders(webhook: WebhookToSign): Record<string, string> {
  const { eventId, body, signer, previousSigner } = webhook;
  const timestamp = String(Math.floor(webhook.sentAt / 1_000));
  const signed = Buffer.concat([Buffer.from(`${eventId}.${timestamp}.`), body]);
  const signers = previousSigner === null ? [signer] : [signer, previousSigner];
  return {
    'webhook-id': eventId,
    'webhook-timestamp': timestamp,
    'webhook-signature': signers.map((secret) => `v1,${hmac('sha256', secret, signed)}`).join(' '),
    'xpay-signature': hmac('sha512', signer, body),
  };
}

function hmac(algorithm: 'sha256' | 'sha512', secret: string, bytes: Buffer): string {
  return createHmac(algorithm, keyBytes(secret)).update(bytes).digest('base64');
}

/** The key bytes of a secret: the base64 after `whsec_`, or without that prefix its UTF-8. Rule: D-53. */
function keyBytes(secret: string): Buffer {
  return secret.startsWith(BASE64_SECRET_PREFIX)
    ? Buffer.from(secret.slice(BASE64_SECRET_PREFIX.length), 'base64')
    : Buffer.from(secret, 'utf8');
}
