import { createHash, randomBytes } from 'node:crypto';
import type { Db } from '../../db/client.ts';
import { findCardSession, tryKey } from '../../db/repositories/checkouts/tries.ts';
import { findMethod, savePaymentMethod } from '../../db/repositories/customers/payment-methods.ts';
import { newId } from '../../domain/ids.ts';
import { readSavedCardToken } from '../../domain/payment-method.ts';
import type { SaveMethodOutcome } from '../../gateways/port.ts';
import type { GatewayRegistry } from '../../gateways/registry.ts';
import { failpoint } from '../../runtime/failpoints.ts';
import { outcomeUnknown } from '../failures.ts';

export interface RedeemTokenInput {
  merchantId: string;
  customerId: string;
  paymentToken: string;
  checkoutSessionId: string;
  /** True if no charge follows, so that the gateway must verify the card. */
  verify: boolean;
  nowAt: number;
}

export type RedeemTokenResult =
  | { kind: 'saved'; paymentMethodId: string }
  | { kind: 'refused'; errorCode: string };

/**
 * Redeems a token for a payment method, PENDING at first. Refuses a refused card, another customer's, and one entered
 * before the present card. A repeat returns the same method. A saved card is sent to no gateway. Throws a retryable error.
 */
export async function redeemToken(
  { db, gateways }: { db: Db; gateways: GatewayRegistry },
  input: RedeemTokenInput,
): Promise<RedeemTokenResult> {
  const id = newId('pmt', input.nowAt, randomBytes);
  const { merchantId, checkoutSessionId: sessionId } = input;
  const savedId = readSavedCardToken(input.paymentToken);
  if (savedId !== null) {
    const saved = await findMethod(db, merchantId, savedId);
    const isUsable = saved?.customerId === input.customerId && saved.status === 'LIVE';
    return isUsable ? { kind: 'saved', paymentMethodId: saved.id } : REFUSED;
  }
  const session = await findCardSession(db, { merchantId, sessionId });
  failpoint('before_gateway');
  const { outcome, gateway } = await redeemAtOne(
    gateways,
    session?.gateways.toReversed() ?? [],
    input,
  );
  failpoint('after_gateway');
  if (outcome.kind === 'unknown') throw outcomeUnknown(outcome.reason);
  if (outcome.kind === 'refused') return { kind: 'refused', errorCode: outcome.code };
  // A bank in India takes charges of an absent payer only under a mandate.
  if (outcome.card.country === 'IN' && session?.purpose !== 'payment') return NEEDS_MANDATE;
  const { enteredAt } = outcome;
  // After this card, the payer entered the subscription's present card on the page of another link.
  if (enteredAt < (session?.presentEnteredAt ?? 0)) return REFUSED;
  // A gateway's page may stay open longer than the link for a new card.
  if (session?.purpose === 'update_method' && enteredAt >= session.expiresAt) return REFUSED;
  const paymentMethodId = await savePaymentMethod(db, {
    merchantId: input.merchantId,
    id,
    customerId: input.customerId,
    gateway,
    ...outcome.card,
    enteredAt,
    tokenHash: tryKey(input.paymentToken),
    createdAt: input.nowAt,
  });
  // The gateway's method belongs to another customer, so this customer may not use it.
  if (paymentMethodId === null) return REFUSED;
  return { kind: 'saved', paymentMethodId };
}

const NEEDS_MANDATE = { kind: 'refused', errorCode: 'card_not_supported' } as const;
const REFUSED = { kind: 'refused', errorCode: 'processing_error' } as const;

/** Tries the gateways of the session's card pages, the last first; one refuses a foreign token. */
async function redeemAtOne(
  gateways: GatewayRegistry,
  [name, ...earlier]: readonly string[],
  input: RedeemTokenInput,
): Promise<{ outcome: SaveMethodOutcome; gateway: string }> {
  const { merchantId } = input;
  const gateway = await (name === undefined
    ? gateways.forNewMethods(merchantId)
    : gateways.of(merchantId, name));
  const outcome = await gateway.saveMethod({
    key: saveKey(input),
    token: input.paymentToken,
    session: input.checkoutSessionId,
    verify: input.verify,
    verifiedAt: input.nowAt,
    reference: { customerId: input.customerId },
  });
  const isUnknownHere = outcome.kind === 'refused' && outcome.code === REFUSED.errorCode;
  return isUnknownHere && earlier.length > 0
    ? redeemAtOne(gateways, earlier, input)
    : { outcome, gateway: gateway.name };
}

/**
 * Returns the redemption's idempotency key, of 48 characters. The same token has another key for another session or
 * customer.
 */
export function saveKey(
  redemption: Pick<
    RedeemTokenInput,
    'merchantId' | 'customerId' | 'checkoutSessionId' | 'paymentToken'
  >,
): string {
  const { merchantId, customerId, checkoutSessionId, paymentToken } = redemption;
  const parts = [merchantId, customerId, checkoutSessionId, paymentToken];
  return `save:${createHash('sha256').update(JSON.stringify(parts)).digest('base64url')}`;
}
