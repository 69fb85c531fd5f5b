import type { Context } from '../../http/request.ts';
import type { CustomerDetails } from '../../../domain/customer.ts';
import { hasAtMost, isStorable } from '../../../domain/storable-text.ts';
import { EMAIL_PATTERN } from '../../fields.ts';
import type { ApiDeps } from '../../deps.ts';
import { setCookie } from './own-requests.ts';
import { seeOther, sendPage } from './page.tsx';
import type { Page } from './page.tsx';

export type DetailName = 'name' | 'email' | 'contactNumber';

/** A typed value, and the key of the text about its problem or null. */
export interface Typed {
  readonly value: string;
  readonly problem: DetailProblem | null;
}
export type TypedDetails = ReadonlyMap<DetailName, Typed>;

export interface Payer {
  readonly customerDetails: CustomerDetails;
  readonly savedDetails: CustomerDetails | null;
  readonly phoneNumberRequired: boolean;
  /** Set if the payer came by a shareable link, which any person may open. */
  readonly linkId?: string | null;
}

const LENGTH_MAX = 255;

export type DetailProblem = 'nameMissing' | 'emailWrong' | 'phoneWrong' | 'contractNumberMissing';

type FieldName = DetailName | 'reference';

const PROBLEMS: Readonly<Record<FieldName, { pattern: RegExp; problem: DetailProblem }>> = {
  name: { pattern: /\S/, problem: 'nameMissing' },
  email: { pattern: EMAIL_PATTERN, problem: 'emailWrong' },
  contactNumber: { pattern: /^\+?[\d ().-]{5,30}$/, problem: 'phoneWrong' },
  reference: { pattern: /\S/, problem: 'contractNumberMissing' },
};

export function readDetails<Name extends FieldName>(
  form: URLSearchParams,
  names: readonly Name[],
): ReadonlyMap<Name, Typed> {
  return new Map(
    names.map((name) => {
      const value = (form.get(name) ?? '').trim();
      const { pattern, problem } = PROBLEMS[name];
      const isRight = pattern.test(value) && hasAtMost(value, LENGTH_MAX) && isStorable(value);
      return [name, { value, problem: isRight ? null : problem }];
    }),
  );
}

export function hasProblem(typed: ReadonlyMap<FieldName, Typed>): boolean {
  return [...typed.values()].some(({ problem }) => problem !== null);
}

export function valuesOf(typed: TypedDetails): Partial<Record<DetailName, string>> {
  return Object.fromEntries([...typed].map(([name, { value }]) => [name, value]));
}

/** The query of the page's address at which a payer changes the e-mail. */
export const CHANGE_EMAIL = 'email';

/** Returns the details that the page asks for at this address, before the card. */
export function askedDetails(ctx: Context, payer: Payer): DetailName[] {
  const isChange = ctx.querystring === CHANGE_EMAIL && payer.customerDetails.email;
  return isChange ? ['email'] : missingDetails(payer);
}

/** Returns the details that neither the order nor the customer has. */
export function missingDetails(payer: Payer): DetailName[] {
  const known = knownDetails(payer);
  const wanted: DetailName[] = ['name', 'email'];
  if (payer.phoneNumberRequired) wanted.push('contactNumber');
  return wanted.filter((name) => !known[name]);
}

/** The merchant's request takes precedence over the customer's record. */
export function knownDetails({ customerDetails, savedDetails }: Payer): CustomerDetails {
  return {
    name: customerDetails.name || savedDetails?.name,
    email: customerDetails.email || savedDetails?.email,
    contactNumber: customerDetails.contactNumber || savedDetails?.contactNumber,
  };
}

/** The known details that a page may show. A link hides the customer's record. */
export function shownDetails(payer: Payer): CustomerDetails {
  return payer.linkId ? payer.customerDetails : knownDetails(payer);
}

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
