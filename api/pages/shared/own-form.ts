import type { Context } from '../../context.ts';
import { readText } from '../../middleware/json-body.ts';
import { isSame, sign } from './signed.ts';

/** Maximum size of a form. A details form has a few hundred bytes. */
const FORM_LIMIT_BYTES = 8_192;

/** Returns the fields of the form in the request's body. Throws `bad_request` if the body exceeds 8 kB. */
export async function readForm(ctx: Context): Promise<URLSearchParams> {
  return new URLSearchParams(await readText(ctx.req, FORM_LIMIT_BYTES));
}

/**
 * Returns the hidden form token, an HMAC of the session id. The token proves that our own page sent the form.
 */
export function formToken(sessionKey: string, sessionId: string): string {
  return sign(sessionKey, `form:${sessionId}`).toString('base64url');
}

/**
 * True if our own page sent the form: the token matches, and no header names another site. Browsers that send
 * `Origin: null` all send `Sec-Fetch-Site`, which then decides.
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
  return isOrigin && isSame(given, expected.token);
}
