import { createHmac } from 'node:crypto';

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

/** `webhook-signature`: one signature a secret, also of the time. `xpay-signature`: body only. */
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
