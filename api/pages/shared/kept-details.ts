import type { Context } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';
import { readDetails, valuesOf } from './details-form.ts';
import type { DetailName, TypedDetails } from './details-form.ts';
import { setCookie } from './own-requests.ts';
import { seeOther, sendPage } from './page.tsx';
import type { Page } from './page.tsx';

/** Keeps mistyped details in the browser, encrypted, so that a redirect after the form shows the details again. */

const COOKIE = 'typed';
const LIFETIME_MS = 10 * 60_000;
/** Browsers ignore a cookie of more than 4,096 characters; the rest is for its name and attributes. */
const VALUE_MAX = 3_800;

type Deps = Pick<ApiDeps, 'publicUrl' | 'sealing' | 'random' | 'logger'>;

/**
 * Redirects to the form's own address, which shows the details with their problems: no reload or step back sends the form
 * again.
 * Sends `page` with 400 if the browser keeps no cookies, or if the details are too long for one.
 */
export function refuseDetails(
  deps: Deps,
  ctx: Context,
  { home, typed, page }: { home: string; typed: TypedDetails; page: Page },
): void {
  const sealed = deps.sealing.seal(JSON.stringify(valuesOf(typed)), `${COOKIE}:${home}`);
  const value = sealed.toString('base64url');
  // Each page with this form sets another cookie when it is opened.
  if (ctx.get('Cookie') === '' || value.length > VALUE_MAX) {
    return sendPage(deps, ctx, page.status === 200 ? { ...page, status: 400 } : page);
  }
  setCookie(ctx, deps.publicUrl, { name: COOKIE, value, path: home, lifetimeMs: LIFETIME_MS });
  seeOther(ctx, ctx.url);
}

/** Returns the kept details of these names; empty without any. */
export function keptDetails(
  { sealing }: Pick<Deps, 'sealing'>,
  ctx: Context,
  home: string,
  names: readonly DetailName[],
): TypedDetails {
  const sealed = Buffer.from(ctx.cookies.get(COOKIE) ?? '', 'base64url');
  const values = sealing.openIfPossible(sealed, `${COOKIE}:${home}`);
  if (values === null) return new Map();
  return readDetails(new URLSearchParams(JSON.parse(values) as Record<string, string>), names);
}

export function forgetDetails(
  { publicUrl }: Pick<Deps, 'publicUrl'>,
  ctx: Context,
  home: string,
): void {
  if (ctx.cookies.get(COOKIE) === undefined) return;
  setCookie(ctx, publicUrl, { name: COOKIE, value: '', path: home, lifetimeMs: 0 });
}
