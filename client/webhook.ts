import { Buffer } from 'node:buffer';
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Event } from './types.gen.ts';

/** The request is not a webhook that the service sent to you now. Answer it with status 400. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

export interface ReceivedWebhook {
  /** The received bytes or their text, before any parsing. */
  readonly body: string | Uint8Array;
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The `eventSigner` of the configuration. During its change: the old and the new one. */
  readonly secret: string | readonly string[];
  /** Greatest age in seconds. Default: 300. */
  readonly toleranceSeconds?: number;
}

const TOLERANCE_SECONDS = 300;

/**
 * Checks `webhook-signature` and its time, and returns the event. An event may come twice: store `eventId`. A newer
 * service may send types that this version does not name.
 * @throws WebhookVerificationError
 */
export function verifyWebhook(received: ReceivedWebhook): Event {
  const { body, headers, secret, toleranceSeconds = TOLERANCE_SECONDS } = received;
  const header = (name: string): string =>
    String((headers instanceof Headers ? headers.get(name) : headers[name]) ?? '');
  const timestamp = header('webhook-timestamp');
  const age = Math.abs(Date.now() / 1_000 - Number(timestamp));
  const given = header('webhook-signature').split(' ');
  const isSigned = [secret].flat().some((one) => {
    const key = one.startsWith('whsec_') ? Buffer.from(one.slice('whsec_'.length), 'base64') : one;
    if (key.length === 0) throw new TypeError('the secret is empty');
    const signed = createHmac('sha256', key).update(`${header('webhook-id')}.${timestamp}.`);
    const right = Buffer.from(`v1,${signed.update(body).digest('base64')}`);
    return given.map((text) => Buffer.from(text)).some((it) => isSame(it, right));
  });
  if (!isSigned) throw new WebhookVerificationError('no signature is of this body and this secret');
  if (!(age <= toleranceSeconds)) throw new WebhookVerificationError('the signature is too old');
  return JSON.parse(typeof body === 'string' ? body : new TextDecoder().decode(body)) as Event;
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
