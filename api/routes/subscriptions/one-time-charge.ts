import type { Db } from '../../../db/client.ts';
import { insertPayment } from '../../../db/repositories/payments/orders.ts';
import { findChargeable } from '../../../db/repositories/subscriptions/read.ts';
import { DomainError } from '../../../domain/errors.ts';
import type { IntentRef } from '../../../domain/payment-intent.ts';
import { validateOneTimeCharge } from '../../../domain/subscription/validate-command.ts';
import { found, ok } from '../../http/request.ts';
import {
  chargeFields,
  chargeProblems,
  comments,
  gatewayChargeProblems,
  idText,
  optional,
} from '../../fields.ts';
import type { Fields } from '../../http/body.ts';
import { route } from '../../http/route.ts';
import { OneTimeCharge, presentCharge, withCharge } from '../payments/charge.ts';
import { INTENT_ID } from '../payments/intent.ts';
import { SUBSCRIPTION_ID } from '../../answer-fields.ts';

const fields = {
  subscriptionId: idText().describe('Id of the subscription.'),
  ...chargeFields,
  comments: optional(comments).describe('Your own note.'),
};

export const chargeSubscriptionOnce = route({
  operationId: 'chargeSubscriptionOnce',
  method: 'post',
  path: '/subscription/merchant/one-time-charge',
  tag: 'Subscriptions',
  summary: 'Charge a subscription’s payment method once',
  description:
    'Allowed in TRIALING, ACTIVE, UNPAID and PAUSED. Changes neither the cycles nor the status. A ' +
    'declined charge is answered 200 with status FAILED.',
  idempotencyKey: 'listed',
  body: {
    fields,
    problems: chargeProblems,
    examples: {
      'An extra': {
        subscriptionId: SUBSCRIPTION_ID,
        amount: 750,
        currency: 'USD',
        comments: 'A box of biscuits',
      },
    },
  },
  answer: {
    description: 'The charge was attempted.',
    schema: OneTimeCharge,
    examples: {
      Paid: { intentId: INTENT_ID, status: 'SUCCESS', errorCode: null, errorMessage: null },
      Declined: {
        intentId: INTENT_ID,
        status: 'FAILED',
        errorCode: 'insufficient_funds',
        errorMessage: 'The account does not hold enough money for this payment.',
      },
    },
  },
  refusals: ['operation_not_allowed', 'resource_not_found'],
  limits: gatewayChargeProblems,
  handle: async (call, deps) =>
    withCharge(call, deps, {
      insert: (tx, ref) => insertOneTime(tx, ref, call.body, deps.now()),
      answer: (intentId, charged) => ok(presentCharge(intentId, charged)),
    }),
});

/**
 * Writes the intent, and locks the subscription's row until the transaction ends. Throws a DomainError if the
 * subscription is unknown or may not be charged.
 */
async function insertOneTime(
  tx: Db,
  { merchantId, intentId }: IntentRef,
  body: Fields<typeof fields>,
  nowAt: number,
): Promise<void> {
  const { subscriptionId, amount, ...order } = body;
  const subscription = found(await findChargeable(tx, merchantId, subscriptionId), 'subscription');
  const { state, customerId, customerDetails } = subscription;
  const decision = validateOneTimeCharge(state);
  if (!decision.ok) throw new DomainError(decision.code, decision.message);
  await insertPayment(tx, {
    merchantId,
    intentId,
    kind: 'one_time',
    subscriptionId,
    customerId,
    paymentMethodId: state.paymentMethodId,
    amountMinor: amount,
    customerDetails,
    ...order,
    nowAt,
  });
}
