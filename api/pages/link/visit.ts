import { createHmac, timingSafeEqual } from 'node:crypto';
import { base62, randomToken } from '../../../domain/ids.ts';
import type { Context } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';

/**
 * A visit is what one browser is told apart from others by, for one link: random, made by the page
 * and kept in a signed cookie, and in the page's form for browsers that keep no cookies. The checkout
 * that comes of it follows from it, so that a form sent twice finds the first one's. Rule: D-37.
 */

const COOKIE = 'visit';
const VISIT = /^[0-9A-Za-z]{22}$/;
/** Half of a SHA-256: 128 bits are 22 characters of base 62. */
const TOKEN_BYTES = 16;
const TOKEN_LENGTH = 22;

type Deps = Pick<ApiDeps, 'publicUrl' | 'random' | 'sessionKey'>;

export function newVisit({ random }: Deps): string {
  return randomToken(random);
}

/** True for the form of a visit; says nothing of who made it. */
export function isVisit(value: string | null): value is string {
  return value !== null && VISIT.test(value);
}

/** The token of the checkout that this visit of the link comes to. Only we can tell it. */
export function checkoutTokenOf({ sessionKey }: Deps, code: string, visit: string): string {
  const digest = hmac(sessionKey, `checkout:${code}:${visit}`);
  return base62(digest.subarray(0, TOKEN_BYTES), TOKEN_LENGTH);
}

/** The visit that the browser's cookie names, or null without one that we signed for this link. */
export function cookieVisit({ sessionKey }: Deps, ctx: Context, code: string): string | null {
  const [visit = '', signature = ''] = (ctx.cookies.get(COOKIE) ?? '').split('.');
  const [given, right] = [Buffer.from(signature), Buffer.from(sign(sessionKey, code, visit))];
  const isOurs = given.length === right.length && timingSafeEqual(given, right);
  return isOurs && isVisit(visit) ? visit : null;
}

/** Has the browser remember the visit, for this link's page only, for `lifetimeMs`. */
export function setCookieVisit(
  { publicUrl, sessionKey }: Deps,
  ctx: Context,
  code: string,
  visit: string,
  lifetimeMs: number,
): void {
  const attributes = [
    `${COOKIE}=${visit}.${sign(sessionKey, code, visit)}`,
    `Path=/l/${code}`,
    `Max-Age=${Math.ceil(lifetimeMs / 1000)}`,
    'HttpOnly',
    'SameSite=Lax',
    // Koa would not set a secure cookie behind a proxy that ends TLS.
    ...(publicUrl.startsWith('https:') ? ['Secure'] : []),
  ];
  ctx.append('Set-Cookie', attributes.join('; '));
}

function sign(sessionKey: string, code: string, visit: string): string {
  return hmac(sessionKey, `visit:${code}:${visit}`).toString('base64url');
}

function hmac(sessionKey: string, text: string): Buffer {
  return createHmac('sha256', sessionKey).update(text).digest();
}
