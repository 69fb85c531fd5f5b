/** Links of hosted pages. The token in the path is the payer's only credential. */

import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { DeclarationKind } from '../domain/declaration.ts';
import { isId, tokenFrom } from '../domain/ids.ts';
import type { SubscriptionRef } from '../domain/subscription/state.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Shortest lifetime of a link in ms. Real time, also for a subscription on a test clock. */
const LINK_LIFETIME_MS = 30 * DAY_MS;

export interface UpdateLink extends SubscriptionRef {
  readonly expiresAt: number;
}

interface Signer {
  readonly sessionKey: string;
}

/** The key that signs links, and the base URL of the hosted pages without trailing slash. */
export interface LinkSettings extends Signer {
  readonly publicUrl: string;
}

/** The session of a payer's own page. */
export interface PortalRef {
  readonly merchantId: string;
  readonly id: string;
}

/** A subscription and its payment method. A new payment method gets a new link. */
export type Updatable = SubscriptionRef & { readonly paymentMethodId: string | null };

/**
 * Returns the URL of the page where a payer replaces a payment method. Expires 30 days after the UTC day of `nowAt`.
 * Within one day it stays the same until the method is replaced.
 */
export function updateMethodLink(
  deps: LinkSettings,
  subscription: Updatable,
  nowAt: number,
): string {
  const tomorrowAt = (Math.floor(nowAt / DAY_MS) + 1) * DAY_MS;
  // Each link has its own session, so a new payment method needs a different link. To make the link differ, a hash of
  // the payment method's id delays `expiresAt` by less than an hour.
  const digest = createHash('sha256')
    .update(subscription.paymentMethodId ?? '')
    .digest();
  const expiresAt = tomorrowAt + LINK_LIFETIME_MS + (digest.readUInt32BE() % HOUR_MS);
  return deps.publicUrl + updateMethodPath(updateToken(deps, subscription, expiresAt));
}

/** Returns the token of the session that follows a link's session. It expires 1 ms earlier, never later. */
export const nextUpdateToken = (deps: Signer, link: UpdateLink): string =>
  updateToken(deps, link, link.expiresAt - 1);

export const updateMethodPath = (token: string): string => `/update-method/${token}`;

/** The session of a hosted page on which a payer pays. */
export interface PaidSession {
  readonly merchantId: string;
  readonly sessionId: string;
  readonly purpose: 'subscription' | 'payment' | 'update_method';
  readonly subscriptionId: string | null;
  readonly expiresAt: number;
}

/** Returns the URL to which a bank sends the payer back; it shows the outcome of the intent. */
export function bankReturnUrl(deps: LinkSettings, session: PaidSession, intentId: string): string {
  return `${deps.publicUrl}${bankPath(pathOf(deps, session), intentId)}?${BANK_RETURN}=now`;
}

/** Returns the path of the page that leads to the bank, and then shows the outcome. `home`: the path of our page. */
export const bankPath = (home: string, intentId: string): string => `${home}/bank/${intentId}`;

function pathOf(deps: Signer, session: PaidSession): string {
  const { merchantId, subscriptionId, purpose, expiresAt } = session;
  if (purpose === 'update_method' && subscriptionId !== null) {
    return updateMethodPath(updateToken(deps, { merchantId, subscriptionId }, expiresAt));
  }
  const token = sessionToken(deps, session);
  return purpose === 'payment' ? paymentPath(token) : checkoutPath(token);
}

export const checkoutPath = (token: string): string => `/checkout/${token}`;

/** Returns the path of a payment's page. `key`: the page's token, or the id of its intent. */
export const paymentPath = (key: string): string => `/payment/${key}`;

/** `<merchant>.<session>.<signature>`: the database has only the hash of a page's own token. */
function sessionToken(
  deps: Signer,
  { merchantId, sessionId }: Pick<PaidSession, 'merchantId' | 'sessionId'>,
): string {
  const signed = `${merchantId.slice(4)}.${sessionId.slice(3)}`;
  return `${signed}.${signature(deps, 'session', signed).toString('base64url')}`;
}

/** Returns the session of a link back to its page; null for any other token. */
export function readSessionToken(
  deps: Signer,
  token: string,
): Pick<PaidSession, 'merchantId' | 'sessionId'> | null {
  const [, signed, merchant, session, given] =
    /^(([0-9A-Za-z]{22})\.([0-9A-Za-z]{22}))\.([\w-]{22})$/.exec(token) ?? [];
  if (signed === undefined || given === undefined) return null;
  if (!isSignature(given, signature(deps, 'session', signed))) return null;
  return { merchantId: `mer_${merchant}`, sessionId: `cs_${session}` };
}

/** The query parameter of a return from the bank. Its value is `now` in the URL that the bank gets. */
export const BANK_RETURN = 'returned';

/** Returns `<merchant>.<subscription>.<expiry>.<signature>`. The ids have no prefixes. */
function updateToken(deps: Signer, ref: SubscriptionRef, expiresAt: number): string {
  const body = [ref.merchantId.slice(4), ref.subscriptionId.slice(4), expiresAt.toString(36)];
  const signed = body.join('.');
  return `${signed}.${signature(deps, 'update-method', signed).toString('base64url')}`;
}

/** Decodes a token, even if it has expired. Returns null if the signature does not match. */
export function readUpdateToken(deps: Signer, token: string): UpdateLink | null {
  const [, signed, merchant, subscription, expiry, given] =
    /^(([0-9A-Za-z]{22})\.([0-9A-Za-z]{22})\.([0-9a-z]{1,9}))\.([\w-]{22})$/.exec(token) ?? [];
  if (signed === undefined || given === undefined) return null;
  const isOurs = isSignature(given, signature(deps, 'update-method', signed));
  const ref = { merchantId: `mer_${merchant}`, subscriptionId: `sub_${subscription}` };
  const isWhole = isId('mer', ref.merchantId) && isId('sub', ref.subscriptionId);
  return isOurs && isWhole ? { ...ref, expiresAt: parseInt(expiry ?? '', 36) } : null;
}

/** Returns the id of a link's session: a hash, because it has no row before the first card. */
export function sessionIdOf(token: string): string {
  return `cs_${tokenFrom(createHash('sha256').update(token).digest())}`;
}

/** Returns a signature of 128 bits. The tokens of other hosted pages also have 128 bits or more. */
function signature(
  { sessionKey }: Signer,
  use: 'update-method' | 'session' | 'portal-link',
  signed: string,
): Buffer {
  return createHmac('sha256', sessionKey).update(`${use}:${signed}`).digest().subarray(0, 16);
}

function isSignature(given: string, right: Buffer): boolean {
  const bytes = Buffer.from(given, 'base64url');
  // The last Base64 character has unused bits, so several texts decode to the same signature.
  return bytes.toString('base64url') === given && timingSafeEqual(bytes, right);
}

/** Paths of hosted pages. The token or intent id in a path is the payer's only credential. */

export const INTENT_PATH = '/payment';
export const INTENT_PARAMETER = 'xpay_intent_id';

/** Not below `/setup-method/`, where merchants read a session by its id. */
export const setupMethodPath = (token: string): string => `/setup/${token}`;

export const portalPath = (token: string): string => `/portal/${token}`;

/** The sender of an e-mail makes the token again: neither the database nor the event has it. */
export const portalToken = (deps: Signer, { merchantId, id }: PortalRef): string =>
  tokenFrom(signature(deps, 'portal-link', `${merchantId}.${id}`));

/** Returns the URL of a payer's own page. */
export const portalLink = (deps: LinkSettings, portal: PortalRef): string =>
  deps.publicUrl + portalPath(portalToken(deps, portal));

/** Returns the path on which a merchant's payers ask for that URL by e-mail. Never changes: merchants link to it. */
export const payerPath = (merchantId: string): string => `/m/${merchantId}`;

export const DECLARATION_PATHS = {
  cancellation: 'cancel',
  withdrawal: 'withdraw',
} as const satisfies Record<DeclarationKind, string>;

/**
 * Returns the path on which a merchant's payers declare without login. Never changes: merchants link to it. `reference`:
 * the contract's number, which the form then has.
 */
export function declarationPath(
  kind: DeclarationKind,
  merchantId: string,
  reference?: string,
): string {
  const query = reference === undefined ? '' : `?${new URLSearchParams({ reference }).toString()}`;
  return `${payerPath(merchantId)}/${DECLARATION_PATHS[kind]}${query}`;
}
