import { Stripe } from 'stripe';
import { GatewayRejectedRequest } from '../port.ts';
import type { RefundOutcome, RefundRequest } from '../port.ts';
import { stripeAmount } from './amounts.ts';
import { failureOf, unknown } from './outcomes.ts';

/**
 * Refunds once per key. Stripe may forget an idempotency key after 24 h, so an earlier refund with the key is
 * looked up first.
 */
export async function refund(stripe: Stripe, request: RefundRequest): Promise<RefundOutcome> {
  const { key, gatewayChargeId, amountMinor, currency } = request;
  try {
    const intent = await stripe.paymentIntents.retrieve(gatewayChargeId);
    if (intent.currency !== currency.toLowerCase()) return refused('currency_differs');
    if (intent.status !== 'succeeded') return refused('charge_not_paid');
    const scaled = stripeAmount(amountMinor, currency);
    if ('problem' in scaled) throw new GatewayRejectedRequest(400, scaled.problem);
    const made = await stripe.refunds.list({ payment_intent: gatewayChargeId, limit: 100 });
    const earlier = made.data.find(({ metadata }) => metadata?.['key'] === key);
    if (earlier && earlier.amount !== scaled.amount) {
      throw new GatewayRejectedRequest(400, 'amount_differs');
    }
    const { id, status } =
      earlier ??
      (await stripe.refunds.create(
        { payment_intent: gatewayChargeId, amount: scaled.amount, metadata: { key } },
        { idempotencyKey: key },
      ));
    if (status === 'succeeded') return { kind: 'refunded', gatewayRefundId: id };
    if (status === 'failed' || status === 'canceled') return refused('refund_failed');
    return unknown(`the refund ${id} is ${status ?? 'undecided'}`);
  } catch (error) {
    return refusalOf(error) ?? failureOf(error);
  }
}

const refused = (reason: Extract<RefundOutcome, { kind: 'refused' }>['reason']) =>
  ({ kind: 'refused', reason }) as const;

function refusalOf(error: unknown) {
  if (!(error instanceof Stripe.errors.StripeInvalidRequestError)) return null;
  if (error.code === 'resource_missing') return refused('charge_not_found');
  const isTooMuch =
    error.code === 'charge_already_refunded' || error.message.includes('greater than');
  return isTooMuch ? refused('exceeds_charge') : null;
}
