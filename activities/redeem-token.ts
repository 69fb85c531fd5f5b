import { createHash, randomBytes } from 'node:crypto';
import type { Db } from '../db/client.ts';
import { savePaymentMethod } from '../db/repositories/customers/payment-methods.ts';
import { newId } from '../domain/ids.ts';
import type { GatewayRegistry } from '../gateways/registry.ts';
import { failpoint } from '../runtime/failpoints.ts';
import { outcomeUnknown } from './failures.ts';

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
 * Redeems a one-time token of the card form for a payment method, which is PENDING until its first use
 * succeeds. A repeat returns the same method. Throws a retryable error if the gateway does not answer; a
 * repeat with the token is then safe.
 */
export async function redeemToken(
  { db, gateways }: { db: Db; gateways: GatewayRegistry },
  input: RedeemTokenInput,
): Promise<RedeemTokenResult> {
  const id = newId('pmt', input.nowAt, randomBytes);
  const gateway = await gateways.forNewMethods(input.merchantId);
  failpoint('before_gateway');
  const outcome = await gateway.saveMethod({
    key: saveKey(input),
    token: input.paymentToken,
    session: input.checkoutSessionId,
    verify: input.verify,
    reference: { customerId: input.customerId },
  });
  failpoint('after_gateway');
  if (outcome.kind === 'unknown') throw outcomeUnknown(outcome.reason);
  if (outcome.kind === 'refused') return { kind: 'refused', errorCode: outcome.code };
  const paymentMethodId = await savePaymentMethod(db, {
    merchantId: input.merchantId,
    id,
    customerId: input.customerId,
    gateway: gateway.name,
    card: outcome.card,
    nowAt: input.nowAt,
  });
  // The gateway's method belongs to another customer, so this customer may not use it.
  if (paymentMethodId === null) return { kind: 'refused', errorCode: 'processing_error' };
  return { kind: 'saved', paymentMethodId };
}

/** Returns the idempotency key of the redemption. For another session or customer, the key differs. */
function saveKey({ merchantId, customerId, checkoutSessionId, paymentToken }: RedeemTokenInput) {
  const parts = [merchantId, customerId, checkoutSessionId, paymentToken];
  return `save:${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`;
}
