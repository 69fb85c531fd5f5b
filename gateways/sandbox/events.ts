import { createHmac, timingSafeEqual } from 'node:crypto';
import type { GatewayHint } from '../../domain/gateway-hint.ts';

/** Header with the time and the signature of an event: `t=<epoch ms>,v1=<hex>`. */
export const SIGNATURE_HEADER = 'sandbox-signature';

/** Maximum difference between the time of a signature and now, in ms. Each repeat of an event has a new signature. */
const TOLERANCE_MS = 300_000;

/** Returns the value of {@link SIGNATURE_HEADER} for an event that is sent at `at`. */
export function signEvent(secret: string, at: number, body: string): string {
  return `t=${at},v1=${digestOf(secret, at, body).toString('hex')}`;
}

/**
 * Verifies the signature and returns the hint of the event: the object to look up. A signed body that is not an
 * event of the sandbox counts as a bad signature.
 */
export function readEvents(
  secret: string,
  rawBody: Buffer,
  signature: string | string[] | undefined,
  nowAt: number,
): GatewayHint[] | 'bad_signature' {
  const body = rawBody.toString('utf8');
  if (!isSigned(secret, body, signature, nowAt)) return 'bad_signature';
  const event = parse(body);
  const { id: eventId, type, key } = event;
  if (typeof eventId !== 'string' || typeof type !== 'string' || typeof key !== 'string') {
    return 'bad_signature';
  }
  if (type === 'charge.decided') {
    return [{ eventId, type, kind: 'charge', gatewayChargeId: null, key }];
  }
  if (type === 'refund.decided') {
    return [{ eventId, type, kind: 'refund', gatewayRefundId: null, key }];
  }
  return [{ eventId, type, kind: 'ignored' }];
}

function isSigned(
  secret: string,
  body: string,
  signature: string | string[] | undefined,
  nowAt: number,
): boolean {
  const [, time, hex] = /^t=(\d{1,15}),v1=([0-9a-f]{64})$/.exec(String(signature)) ?? [];
  if (time === undefined || hex === undefined) return false;
  const at = Number(time);
  if (Math.abs(nowAt - at) > TOLERANCE_MS) return false;
  return timingSafeEqual(Buffer.from(hex, 'hex'), digestOf(secret, at, body));
}

function digestOf(secret: string, at: number, body: string): Buffer {
  return createHmac('sha256', secret).update(`${at}.${body}`).digest();
}

/** Returns an empty object if the body is not a JSON object. */
function parse(body: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
