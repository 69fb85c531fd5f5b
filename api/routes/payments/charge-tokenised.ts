import type { Db } from '../../../db/client.ts';
import { findCustomer } from '../../../db/repositories/customers/customers.ts';
import { findMethod } from '../../../db/repositories/customers/payment-methods.ts';
import { insertPayment } from '../../../db/repositories/payments/orders.ts';
import type { IntentRef } from '../../../domain/payment-intent.ts';
import { EXTENSION } from '../../answer-fields.ts';
import { found, notFound, ok } from '../../http/request.ts';
import {
  chargeFields,
  chargeProblems,
  idText,
  optional,
  ownPairs,
  receiptId,
  storeFrontId,
  gatewayChargeProblems,
} from '../../fields.ts';
import type { Fields } from '../../http/body.ts';
import { route } from '../../http/route.ts';
import { presentCharge, TokenisedCharge, withCharge } from './charge.ts';
import { INTENT_ID } from './intent.ts';

const fields = {
  pmId: idText().describe(
    'Id of the saved payment method, from the callback, the event or the customer’s list.',
  ),
  customerId: idText().describe('Id of the customer that the payment method belongs to.'),
  currency: chargeFields.currency,
  amount: chargeFields.amount,
  receiptId: optional(receiptId).meta({ description: 'Your own order id.', ...EXTENSION }),
  storeFrontId,
  metadata: ownPairs,
};

export const chargeTokenised = route({
  operationId: 'chargeTokenisedPaymentMethod',
  method: 'post',
  path: '/payments/charge-tokenised-pm',
  tag: 'Payments',
  summary: 'Charge a saved payment method',
  description:
    'The payment method must belong to the customer. A declined charge is answered 200 with status ' +
    'FAILED.',
  idempotencyKey: 'listed',
  body: {
    fields,
    problems: chargeProblems,
    examples: {
      'A teapot': {
        pmId: 'pmt_0002sSOLuP0oT4bXWmA1nLdK',
        customerId: 'cus_0002sSOLtvYJpjM0P8rC2uQe',
        currency: 'USD',
        amount: 4_900,
      },
    },
  },
  answer: {
    description: 'The charge was attempted.',
    schema: TokenisedCharge,
    examples: {
      Paid: { intentId: INTENT_ID, status: 'SUCCESS' },
      Declined: { intentId: INTENT_ID, status: 'FAILED', errorCode: 'expired_card' },
    },
  },
  refusals: ['operation_not_allowed', 'resource_not_found'],
  limits: gatewayChargeProblems,
  handle: async (call, deps) =>
    withCharge(call, deps, {
      insert: (tx, ref) => insertTokenised(tx, ref, call.body, deps.now()),
      answer: (id, charged) => {
        const { intentId, status, errorCode } = presentCharge(id, charged);
        return ok({ intentId, status, ...(errorCode === null ? {} : { errorCode }) });
      },
    }),
});

async function insertTokenised(
  tx: Db,
  { merchantId, intentId }: IntentRef,
  body: Fields<typeof fields>,
  nowAt: number,
): Promise<void> {
  const { pmId: paymentMethodId, customerId, amount, ...order } = body;
  const customer = found(await findCustomer(tx, merchantId, customerId), 'customer');
  const method = await findMethod(tx, merchantId, paymentMethodId);
  const isLive = method?.status === 'LIVE' && method.customerId === customer.id;
  if (!isLive) throw notFound('payment method');
  await insertPayment(tx, {
    merchantId,
    intentId,
    kind: 'tokenised',
    customerId: customer.id,
    paymentMethodId,
    amountMinor: amount,
    customerDetails: customer.details,
    ...order,
    nowAt,
  });
}
