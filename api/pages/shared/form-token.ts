import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Context } from '../../context.ts';

/** Proof that a form came from our own page of this checkout session: an HMAC of its id. */
export function formToken(sessionKey: string, sessionId: string): string {
  return createHmac('sha256', sessionKey).update(`form:${sessionId}`).digest('base64url');
}

/**
 * True for a form that our own page sent: the right token, and no sign of another site. With
 * `Referrer-Policy: no-referrer` browsers send `Origin: null` with our own forms too, so the
 * `Sec-Fetch-Site` that all of them send beside it decides there.
 */
export function isOwnForm(
  ctx: Context,
  expected: { token: string; publicUrl: string },
  given: string,
): boolean {
  const fetchSite = ctx.get('Sec-Fetch-Site');
  if (fetchSite !== '' && fetchSite !== 'same-origin') return false;
  const origin = ctx.get('Origin');
  const isOrigin =
    origin === '' || origin === 'null' || origin === new URL(expected.publicUrl).origin;
  const [a, b] = [Buffer.from(expected.token), Buffer.from(given)];
  return isOrigin && a.length === b.length && timingSafeEqual(a, b);
}
