import { base62, randomToken } from '../../../domain/ids.ts';
import type { Context } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';
import { isSame, setCookie, sign } from '../shared/own-requests.ts';

/** A visit is a random id of one browser on one link. It gives the checkout's token, so a repeat creates nothing. */

const COOKIE = 'visit';
const VISIT = /^[0-9A-Za-z]{22}$/;
/** Half of a SHA-256: 128 bits, which are 22 characters of base 62. */
const TOKEN_BYTES = 16;
const TOKEN_LENGTH = 22;

type Deps = Pick<ApiDeps, 'publicUrl' | 'random' | 'sessionKey'>;

export function newVisit({ random }: Deps): string {
  return randomToken(random);
}

/** True if the text has the format of a visit. Does not check that this server created the visit. */
export function isVisit(value: string | null): value is string {
  return value !== null && VISIT.test(value);
}

export function checkoutTokenOf({ sessionKey }: Deps, code: string, visit: string): string {
  const digest = sign(sessionKey, `checkout:${code}:${visit}`);
  return base62(digest.subarray(0, TOKEN_BYTES), TOKEN_LENGTH);
}

/** Returns the visit in the browser's cookie; null if the cookie is not signed for this link. */
export function cookieVisit({ sessionKey }: Deps, ctx: Context, code: string): string | null {
  const [visit = '', signature = ''] = (ctx.cookies.get(COOKIE) ?? '').split('.');
  const isOurs = isSame(signature, signatureOf(sessionKey, code, visit));
  return isOurs && isVisit(visit) ? visit : null;
}

export function setCookieVisit(
  { publicUrl, sessionKey }: Deps,
  ctx: Context,
  code: string,
  visit: string,
  lifetimeMs: number,
): void {
  const value = `${visit}.${signatureOf(sessionKey, code, visit)}`;
  setCookie(ctx, publicUrl, { name: COOKIE, value, path: `/l/${code}`, lifetimeMs });
}

function signatureOf(sessionKey: string, code: string, visit: string): string {
  return sign(sessionKey, `visit:${code}:${visit}`).toString('base64url');
}
