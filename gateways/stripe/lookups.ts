import { Stripe } from 'stripe';
import type { DisputeStatus } from '../../domain/dispute.ts';
import type { DisputeLookup, MethodLookup } from '../port.ts';
import { ourAmount } from './amounts.ts';
import { cardOf } from './card-entry.ts';
import { partsOf } from './charges.ts';
import { failureOf, unknown } from './outcomes.ts';

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

function isMissing(error: unknown): boolean {
  return error instanceof Stripe.errors.StripeError && error.code === 'resource_missing';
}
