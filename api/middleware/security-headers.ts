import type { Context } from '../context.ts';

const HSTS_MAX_AGE_S = 63_072_000;

const HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  // The URL of a hosted page contains a bearer token, which must not reach other sites.
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
  'X-Robots-Tag': 'noindex, nofollow',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), microphone=(), geolocation=(), payment=(self)',
};

/**
 * Sets the security headers of every answer. A hosted page replaces the Content-Security-Policy.
 * Strict-Transport-Security is sent only if the public URL is https, because a browser that received the
 * header refuses http for two years.
 */
export function securityHeaders(publicUrl: string) {
  const isHttps = publicUrl.startsWith('https:');
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    ctx.set(HEADERS);
    if (isHttps) {
      ctx.set('Strict-Transport-Security', `max-age=${HSTS_MAX_AGE_S}; includeSubDomains`);
    }
    await next();
  };
}
