import { Stripe } from 'stripe';
import type { DisputeStatus } from '../../domain/dispute.ts';
import type { DisputeLookup, FraudWarningLookup, MethodLookup, NewestCharge } from '../port.ts';
import { ourAmount } from './amounts.ts';
import { cardOf } from './card-entry.ts';
import { partsOf } from './charges.ts';
import { failureOf, refusedCharge, unknown } from './outcomes.ts';

export async function lookupDispute(
  stripe: Stripe,
  gatewayDisputeId: string,
): Promise<DisputeLookup> {
  try {
    const dispute = await stripe.disputes.retrieve(gatewayDisputeId);
    const { payment_intent: intent, amount, reason, status, created } = dispute;
    if (typeof intent !== 'string') return { kind: 'absent' };
    const currency = dispute.currency.toUpperCase();
    return {
      kind: 'found',
      dispute: {
        gatewayChargeId: intent,
        amountMinor: ourAmount(amount, currency),
        currency,
        reason,
        status: statusOf(status),
        openedAt: created * 1_000,
      },
    };
  } catch (error) {
    return isMissing(error) ? { kind: 'absent' } : unknown(failureOf(error).reason);
  }
}

export async function lookupFraudWarning(
  stripe: Stripe,
  gatewayWarningId: string,
): Promise<FraudWarningLookup> {
  try {
    const warning = await stripe.radar.earlyFraudWarnings.retrieve(gatewayWarningId);
    const { payment_intent: intent, fraud_type: fraudType } = warning;
    return typeof intent === 'string'
      ? { kind: 'found', gatewayChargeId: intent, fraudType }
      : { kind: 'absent' };
  } catch (error) {
    return isMissing(error) ? { kind: 'absent' } : unknown(failureOf(error).reason);
  }
}

/** An inquiry (`warning_…`) and a prevented dispute end without a decision about the money. */
function statusOf(status: Stripe.Dispute.Status): DisputeStatus {
  if (status === 'won') return 'WON';
  if (status === 'lost') return 'LOST';
  return status === 'warning_closed' || status === 'prevented' ? 'CLOSED' : 'OPEN';
}

/** Reads the present card of a payment method. A payment method without a customer cannot be charged. */
export async function lookupMethod(stripe: Stripe, gatewayMethodId: string): Promise<MethodLookup> {
  const [, id] = partsOf(gatewayMethodId);
  try {
    const { customer, card } = await stripe.paymentMethods.retrieve(id);
    if (typeof customer !== 'string' || !card) return { kind: 'removed' };
    return { kind: 'found', card: cardOf(customer, id, card) };
  } catch (error) {
    return isMissing(error) ? { kind: 'removed' } : unknown(failureOf(error).reason);
  }
}

/** The merchant may have so many newer sales of other programs. */
const OTHER_SALES_MAX = 1_000;

/** Reads the newest charge since `sinceAt` that we made for the merchant. */
export async function newestCharge(
  stripe: Stripe,
  merchantId: string,
  sinceAt: number,
): Promise<NewestCharge> {
  const created = { gte: Math.max(0, Math.floor(sinceAt / 1_000)) };
  try {
    let read = 0;
    for await (const charge of stripe.charges.list({ limit: 100, created })) {
      const { metadata, payment_intent: gatewayChargeId } = charge;
      const isOurs = metadata['key'] !== undefined && metadata['merchantId'] === merchantId;
      if (isOurs && typeof gatewayChargeId === 'string') {
        return { kind: 'found', gatewayChargeId, createdAt: charge.created * 1_000 };
      }
      read += 1;
      if (read === OTHER_SALES_MAX) break;
    }
    return { kind: 'absent' };
  } catch (error) {
    const failure = refusedCharge(error) ?? failureOf(error);
    return 'code' in failure ? unknown(failure.code) : failure;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Stripe.errors.StripeError && error.code === 'resource_missing';
}
