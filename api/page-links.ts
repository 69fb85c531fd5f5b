/** Links to hosted pages. The token in the path is the only credential. */

import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { base62, isId } from '../domain/ids.ts';
import type { SubscriptionRef } from '../domain/subscription/state.ts';

export function paymentPath(token: string): string {
  return `/payment/${token}`;
}

/** Not under `/setup-method/`, where merchants read a session by its id. */
export function setupMethodPath(token: string): string {
  return `/setup/${token}`;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** How long a link works at least. Always real time, even with a test clock. Rule: D-33. */
const LINK_LIFETIME_MS = 30 * DAY_MS;

/** The content of a link. The link's signature proves it. */
export interface UpdateLink extends SubscriptionRef {
  readonly expiresAt: number;
}

type Signer = { readonly sessionKey: string };

/** A subscription and its payment method. A new payment method gets a new link. */
export type Updatable = SubscriptionRef & { readonly paymentMethodId: string | null };

/**
 * The URL of the page where a payer replaces a subscription's payment method. It works for 30 days from
 * the end of the UTC day of `nowAt` (real time), and up to an hour longer. The URL names the subscription
 * and is signed, so nothing is stored for it. All reads of one day get the same URL until the payment
 * method is replaced. Rule: D-33.
 */
export function updateMethodLink(
  deps: Signer & { readonly publicUrl: string },
  subscription: Updatable,
  nowAt: number,
): string {
  const tomorrowAt = (Math.floor(nowAt / DAY_MS) + 1) * DAY_MS;
  // The page shows the outcome of its own link, so a new payment method needs a different link. The hash
  // of the payment method id moves `expiresAt` by less than an hour.
  const digest = createHash('sha256')
    .update(subscription.paymentMethodId ?? '')
    .digest();
  const expiresAt = tomorrowAt + LINK_LIFETIME_MS + (digest.readUInt32BE() % HOUR_MS);
  return deps.publicUrl + updateMethodPath(updateToken(deps, subscription, expiresAt));
}

export function updateMethodPath(token: string): string {
  return `/update-method/${token}`;
}

/** `<merchant>.<subscription>.<expiry>.<signature>`, ids without their prefixes. */
function updateToken(deps: Signer, ref: SubscriptionRef, expiresAt: number): string {
  const body = [ref.merchantId.slice(4), ref.subscriptionId.slice(4), expiresAt.toString(36)];
  const signed = body.join('.');
  return `${signed}.${signature(deps, signed).toString('base64url')}`;
}

/** Decodes a token. Null unless we signed exactly this text. The token may have expired. */
export function readUpdateToken(deps: Signer, token: string): UpdateLink | null {
  const [, signed, merchant, subscription, expiry, given] =
    /^(([0-9A-Za-z]{22})\.([0-9A-Za-z]{22})\.([0-9a-z]{1,9}))\.([\w-]{22})$/.exec(token) ?? [];
  if (signed === undefined || given === undefined) return null;
  const proof = signature(deps, signed);
  const bytes = Buffer.from(given, 'base64url');
  // The last Base64 character has unused bits, so several texts decode to the same signature.
  const isOurs = bytes.toString('base64url') === given && timingSafeEqual(bytes, proof);
  const ref = { merchantId: `mer_${merchant}`, subscriptionId: `sub_${subscription}` };
  const isWhole = isId('mer', ref.merchantId) && isId('sub', ref.subscriptionId);
  return isOurs && isWhole ? { ...ref, expiresAt: parseInt(expiry ?? '', 36) } : null;
}

/** The id of a link's checkout session. It is derived from the token, before the row exists. */
export function sessionIdOf(token: string): string {
  return `cs_${base62(createHash('sha256').update(token).digest().subarray(0, 16), 22)}`;
}

/** 128 bits, like the other tokens of hosted pages. */
function signature({ sessionKey }: Signer, signed: string): Buffer {
  const mac = createHmac('sha256', sessionKey).update(`update-method:${signed}`).digest();
  return mac.subarray(0, 16);
}
