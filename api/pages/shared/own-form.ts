import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Context } from '../../context.ts';
import { readText } from '../../middleware/json-body.ts';

/** A details form is a few hundred bytes. */
const FORM_LIMIT_BYTES = 8_192;

/** The fields of a form that a browser sent. Throws `bad_request` when it is too long. */
export async function readForm(ctx: Context): Promise<URLSearchParams> {
  return new URLSearchParams(await readText(ctx.req, FORM_LIMIT_BYTES));
}

/** A token that proves that our own page of this session sent a form: an HMAC of the session id. */
export function formToken(sessionKey: string, sessionId: string): string {
  return createHmac('sha256', sessionKey).update(`form:${sessionId}`).digest('base64url');
}

/**
 * True when our own page sent the form: the token matches, and no header names another site. Under
 * `Referrer-Policy: no-referrer` browsers send `Origin: null` with our own forms too. In that case
 * `Sec-Fetch-Site` decides, which all of these browsers send.
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
