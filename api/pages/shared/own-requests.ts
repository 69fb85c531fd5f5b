import type { Context } from '../../http/request.ts';
import { readText } from '../../http/body.ts';
import { isToken, randomToken } from '../../../domain/ids.ts';
import type { ApiDeps } from '../../deps.ts';
import { createHmac, timingSafeEqual } from 'node:crypto';

/** Maximum size of a form. The longest has 1,000 characters of a payer, of at most 12 bytes in a form. */
const FORM_LIMIT_BYTES = 16_384;

export async function readForm(ctx: Context): Promise<URLSearchParams> {
  return new URLSearchParams(await readText(ctx.req, FORM_LIMIT_BYTES));
}

/** Proves that our own page sent the form. */
export function formToken(sessionKey: string, sessionId: string): string {
  return sign(sessionKey, `form:${sessionId}`).toString('base64url');
}

/**
 * True if our page with the token of `sessionId` sent the form. Browsers that send `Origin: null` all send
 * `Sec-Fetch-Site`, which then decides.
 */
export function isOwnForm(
  { publicUrl, sessionKey }: Pick<Deps, 'publicUrl' | 'sessionKey'>,
  ctx: Context,
  form: URLSearchParams,
  sessionId: string,
): boolean {
  const fetchSite = ctx.get('Sec-Fetch-Site');
  if (fetchSite !== '' && fetchSite !== 'same-origin') return false;
  const origin = ctx.get('Origin');
  const isOrigin = origin === '' || origin === 'null' || origin === new URL(publicUrl).origin;
  return isOrigin && isSame(form.get('form_token') ?? '', formToken(sessionKey, sessionId));
}

const COOKIE = 'payer';

type Deps = Pick<ApiDeps, 'publicUrl' | 'random' | 'sessionKey'>;

/** Returns the browser's id from the cookie of the page at `home`. Sets the cookie if it is missing. */
export function browserOf({ publicUrl, random }: Deps, ctx: Context, home: string): string {
  const known = ctx.cookies.get(COOKIE) ?? '';
  if (isToken(known)) return known;
  const browser = randomToken(random);
  setCookie(ctx, publicUrl, { name: COOKIE, value: browser, path: home });
  return browser;
}

/** Returns the URL to which the tokeniser redirects this browser from the page at the path `home`. */
export function returnUrl(
  { publicUrl, sessionKey }: Pick<Deps, 'publicUrl' | 'sessionKey'>,
  home: string,
  browser: string,
): string {
  return `${publicUrl}${home}/return?state=${stateOf(sessionKey, home, browser)}`;
}

/** Proves by the URL's `state` and the cookie that this browser was shown the card form at `home`. */
export function isOwnReturn(
  { sessionKey }: Pick<Deps, 'sessionKey'>,
  ctx: Context,
  home: string,
): boolean {
  const browser = ctx.cookies.get(COOKIE) ?? '';
  if (!isToken(browser)) return false;
  const given = new URLSearchParams(ctx.querystring).get('state') ?? '';
  return isSame(given, stateOf(sessionKey, home, browser));
}

function stateOf(sessionKey: string, home: string, browser: string): string {
  return sign(sessionKey, `return:${home}:${browser}`).toString('base64url');
}

/** Returns an HMAC. `text` must begin with its use, so that no signature is valid for another use. */
export function sign(sessionKey: string, text: string): Buffer {
  return createHmac('sha256', sessionKey).update(text).digest();
}

/** Compares two texts in a time that does not depend on them. */
export function isSame(given: string, right: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(right)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Sets a cookie for the path of one page. Without `lifetimeMs` it ends with the browser's session. */
export function setCookie(
  ctx: Context,
  publicUrl: string,
  cookie: { name: string; value: string; path: string; lifetimeMs?: number },
): void {
  const { name, value, path, lifetimeMs } = cookie;
  const attributes = [
    `${name}=${value}`,
    `Path=${path}`,
    ...(lifetimeMs === undefined ? [] : [`Max-Age=${Math.ceil(lifetimeMs / 1000)}`]),
    'HttpOnly',
    // Not Strict: the tokeniser on another site redirects the browser to the return URL.
    'SameSite=Lax',
    // `ctx.cookies` refuses to set a secure cookie behind a proxy that terminates TLS.
    ...(publicUrl.startsWith('https:') ? ['Secure'] : []),
  ];
  ctx.append('Set-Cookie', attributes.join('; '));
}
