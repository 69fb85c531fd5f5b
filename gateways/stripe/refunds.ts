import { Stripe } from 'stripe';
import { GatewayRejectedRequest } from '../port.ts';
import type {
  KnownRefund,
  RefundLookupOutcome,
  RefundOutcome,
  RefundRef,
  RefundRefusal,
  RefundRequest,
} from '../port.ts';
import { stripeAmount } from './amounts.ts';
import { definiteRefusal, failureOf, unknown } from './outcomes.ts';

/** Refunds once per key. Looks it up first, because Stripe may forget an idempotency key after 24 h. */
export async function refund(stripe: Stripe, request: RefundRequest): Promise<RefundOutcome> {
  const { key, gatewayChargeId, amountMinor, currency } = request;
  try {
    const intent = await stripe.paymentIntents.retrieve(gatewayChargeId);
    if (intent.currency !== currency.toLowerCase()) return refused('currency_differs');
    if (intent.status !== 'succeeded') return refused('charge_not_paid');
    const scaled = stripeAmount(amountMinor, currency);
    if ('problem' in scaled)
      return { ...refused('refund_not_possible'), gatewayCode: scaled.problem };
    const earlier = await earlierRefund(stripe, request);
    if (earlier && earlier.amount !== scaled.amount) {
      throw new GatewayRejectedRequest(400, 'amount_differs');
    }
    const creation = { payment_intent: gatewayChargeId, amount: scaled.amount, metadata: { key } };
    // No further key after a stored 500: Stripe may still make the refund that it answered so.
    return known(earlier ?? (await stripe.refunds.create(creation, { idempotencyKey: key })));
  } catch (error) {
    return refusalOf(error) ?? failureOf(error);
  }
}

/** Reads the refund by its id, or finds it by our key among the refunds of the charge. */
export async function lookupRefund(stripe: Stripe, ref: RefundRef): Promise<RefundLookupOutcome> {
  try {
    const found =
      ref.gatewayRefundId === null
        ? await earlierRefund(stripe, ref)
        : await stripe.refunds.retrieve(ref.gatewayRefundId);
    return found ? known(found) : { kind: 'absent' };
  } catch (error) {
    if (refusalOf(error)?.reason === 'charge_not_found') return { kind: 'absent' };
    return unknown(failureOf(error).reason);
  }
}

/** The refund of the charge with our key in its metadata. Undefined if there is none. */
async function earlierRefund(
  stripe: Stripe,
  { key, gatewayChargeId }: RefundRequest,
): Promise<Stripe.Refund | undefined> {
  const made = stripe.refunds.list({ payment_intent: gatewayChargeId, limit: 100 });
  for await (const refund of made) if (refund.metadata?.['key'] === key) return refund;
  return undefined;
}

/** `requires_action` and `pending` are decided later. A refund that succeeded may fail days later. */
function known({ id, status }: Stripe.Refund): KnownRefund {
  if (status === 'succeeded') return { kind: 'refunded', gatewayRefundId: id };
  if (status === 'failed' || status === 'canceled') return refused('refund_failed');
  return { kind: 'pending', gatewayRefundId: id };
}

const refused = (reason: Extract<RefundOutcome, { kind: 'refused' }>['reason']) =>
  ({ kind: 'refused', reason }) as const;

const REASONS: Readonly<Record<string, RefundRefusal | undefined>> = {
  charge_already_refunded: 'exceeds_charge',
  charge_disputed: 'charge_disputed',
  refund_disputed_payment: 'charge_disputed',
  balance_insufficient: 'balance_insufficient',
  insufficient_funds: 'balance_insufficient',
};

/** Some of Stripe's refusals have no code, only a message. */
const MESSAGES: readonly (readonly [text: string, RefundRefusal])[] = [
  ['greater than', 'exceeds_charge'],
  ['nsufficient funds', 'balance_insufficient'],
  ['charged back', 'charge_disputed'],
];

/** Returns the definite refusal of a refund, after which nothing was refunded; null for any other error. */
function refusalOf(error: unknown): Extract<RefundOutcome, { kind: 'refused' }> | null {
  if (!(error instanceof Stripe.errors.StripeError)) return null;
  const isRequest = error instanceof Stripe.errors.StripeInvalidRequestError;
  if (isRequest && error.code === 'resource_missing') return refused('charge_not_found');
  const gatewayCode = definiteRefusal(error);
  if (gatewayCode === null) return null;
  const reason =
    REASONS[gatewayCode] ?? MESSAGES.find(([text]) => error.message.includes(text))?.[1];
  return reason === undefined
    ? { ...refused('refund_not_possible'), gatewayCode }
    : refused(reason);
}
