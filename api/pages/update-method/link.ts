import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { base62, isId } from '../../../domain/ids.ts';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** How long a link works at least, in real time also for one on a test clock. Rule: D-33. */
const LIFE_MS = 30 * DAY_MS;

/** What a link says of itself; true because it is signed. */
export interface UpdateLink extends SubscriptionRef {
  readonly expiresAt: number;
}

type Signer = { readonly sessionKey: string };

/** A subscription and the method it has: another method has another link. */
export type Updatable = SubscriptionRef & { readonly paymentMethodId: string | null };

/**
 * The page where a payer gives a subscription another method, as a URL that works for 30 days from
 * `nowAt` (real time), and for the rest of that day. It says whose it is and is signed, so nothing is
 * stored for it. All reads of a day give the same link, until the method is replaced. Rule: D-33.
 */
export function updateMethodLink(
  deps: Signer & { readonly publicUrl: string },
  subscription: Updatable,
  nowAt: number,
): string {
  const tomorrowAt = (Math.floor(nowAt / DAY_MS) + 1) * DAY_MS;
  // The page of a link shows what came of it; the moment tells the next one apart.
  const digest = createHash('sha256')
    .update(subscription.paymentMethodId ?? '')
    .digest();
  const expiresAt = tomorrowAt + LIFE_MS + (digest.readUInt32BE() % HOUR_MS);
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

/** What a token says, or null for one that is not ours to the letter. It may have expired. */
export function readUpdateToken(deps: Signer, token: string): UpdateLink | null {
  const [, signed, merchant, subscription, expiry, given] =
    /^(([0-9A-Za-z]{22})\.([0-9A-Za-z]{22})\.([0-9a-z]{1,9}))\.([\w-]{22})$/.exec(token) ?? [];
  if (signed === undefined || given === undefined) return null;
  const proof = signature(deps, signed);
  const bytes = Buffer.from(given, 'base64url');
  // The last character has bits that no byte takes: only the proper spelling is ours.
  const isOurs = bytes.toString('base64url') === given && timingSafeEqual(bytes, proof);
  const ref = { merchantId: `mer_${merchant}`, subscriptionId: `sub_${subscription}` };
  const isWhole = isId('mer', ref.merchantId) && isId('sub', ref.subscriptionId);
  return isOurs && isWhole ? { ...ref, expiresAt: parseInt(expiry ?? '', 36) } : null;
}

/** The checkout session of a link: the same for every opening, and there before its row is. */
export function sessionIdOf(token: string): string {
  return `cs_${base62(createHash('sha256').update(token).digest().subarray(0, 16), 22)}`;
}

/** 128 bits, the strength of every other token here. */
function signature({ sessionKey }: Signer, signed: string): Buffer {
  const mac = createHmac('sha256', sessionKey).update(`update-method:${signed}`).digest();
  return mac.subarray(0, 16);
}
