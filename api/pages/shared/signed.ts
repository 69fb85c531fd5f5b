import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Context } from '../../context.ts';

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
