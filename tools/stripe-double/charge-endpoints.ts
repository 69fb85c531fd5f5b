import { display } from './amounts.ts';
import { newId } from './book.ts';
import type { Stored } from './book.ts';
import { coded, invalid } from './errors.ts';
import { integer, metadata, requiredText } from './form.ts';
import type { Params } from './form.ts';
import { listing, reading, serving } from './endpoint.ts';
import type { Endpoint } from './endpoint.ts';
import type { Scope } from './scope.ts';
import { refund } from './shapes.ts';

export const chargeEndpoints: Endpoint[] = [
  listing('charge', '/v1/charges', ['payment_intent']),
  listing('refund', '/v1/refunds', ['payment_intent']),
  reading('refund', '/v1/refunds'),
  reading('dispute', '/v1/disputes'),
  reading('radar.early_fraud_warning', '/v1/radar/early_fraud_warnings'),
  serving('POST', '/v1/refunds', ['payment_intent', 'amount', 'metadata'], createRefund),
];

async function createRefund(scope: Scope, { params }: { readonly params: Params }) {
  const { book } = scope;
  const charge = await refundedCharge(scope, params);
  const total = Number(charge.body['amount']);
  const left = total - Number(charge.body['amount_refunded']);
  const currency = String(charge.body['currency']);
  if (charge.body['disputed'] === true) {
    const why = `Charge ${charge.id} has been charged back; cannot issue a refund.`;
    throw invalid(why, coded('charge_disputed'));
  }
  if (left === 0) {
    const why = `Charge ${charge.id} has already been refunded.`;
    throw invalid(why, coded('charge_already_refunded'));
  }
  const amount = integer(params, 'amount') ?? left;
  if (amount < 1) {
    const code = 'parameter_invalid_integer';
    throw invalid('Invalid positive integer', { code, param: 'amount' });
  }
  if (amount > left) {
    throw invalid(
      `Refund amount (${display(amount, currency)}) is greater than unrefunded amount on charge (${display(left, currency)})`,
      { param: 'amount' },
    );
  }
  await book.update(charge, {
    amount_refunded: total - left + amount,
    refunded: amount === left,
  });
  const isPending = charge.hidden['pendingRefunds'] === true;
  const created = await book.insert(
    'refund',
    refund(newId('re'), scope.now, {
      amount,
      currency,
      charge: charge.id,
      payment_intent: charge.body['payment_intent'],
      metadata: metadata(params),
      ...(isPending ? { status: 'pending', pending_reason: 'processing' } : {}),
    }),
  );
  return created.body;
}

async function refundedCharge(scope: Scope, params: Params): Promise<Stored> {
  const { book } = scope;
  const intentId = requiredText(params, 'payment_intent');
  const { body } = await book.get('payment_intent', intentId, 'payment_intent');
  const id = body['latest_charge'];
  const charge = typeof id === 'string' ? await book.lock('charge', id, 'charge') : null;
  if (charge?.body['status'] === 'succeeded') return charge;
  throw invalid(`This PaymentIntent (${intentId}) does not have a successful charge to refund.`);
}

/** Null: succeeded. A failed refund's amount can be refunded again, even if it had succeeded before. */
export async function settleRefund(scope: Scope, id: string, failure: string | null) {
  const { book } = scope;
  const before = await book.lock('refund', id);
  const charge = await book.lock('charge', String(before.body['charge']));
  if (failure === null) {
    const settled = await book.update(before, { status: 'succeeded', pending_reason: undefined });
    scope.emit('refund.updated', settled.body);
    return settled.body;
  }
  const failed = await book.update(before, {
    status: 'failed',
    failure_reason: failure,
    pending_reason: undefined,
  });
  await book.update(charge, {
    amount_refunded: Number(charge.body['amount_refunded']) - Number(before.body['amount']),
    refunded: false,
  });
  scope.emit('refund.updated', failed.body);
  scope.emit('refund.failed', failed.body);
  return failed.body;
}
