import type { Context } from '../context.ts';

/** Two years, in seconds. */
const HSTS_MAX_AGE_S = 63_072_000;

const HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  // The URL of a hosted page is a bearer token.
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
  'X-Robots-Tag': 'noindex, nofollow',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), microphone=(), geolocation=(), payment=(self)',
};

/**
 * Headers of every answer; a hosted page replaces the policy with its own. Strict transport only
 * where the public address is https: a browser would refuse plain http for two years.
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
