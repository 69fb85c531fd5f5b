import { z } from 'zod';
import { findIntentRecord } from '../../../db/repositories/payments/read.ts';
import { invariant } from '../../../domain/errors.ts';
import { randomToken, newId } from '../../../domain/ids.ts';
import { offeredMethods } from '../../../domain/payment-method.ts';
import { ok } from '../../http/request.ts';
import {
  cancelUrl,
  chargeFields,
  chargeProblems,
  customerDetails as customerDetailsField,
  description,
  gatewayChargeProblems,
  httpUrl,
  knownCustomerId,
  locale,
  optional,
  ownPairs,
  PAYER,
  paymentMethods,
  phoneNumberRequired,
  receiptId,
  storeFrontId,
} from '../../fields.ts';
import { writeOnce } from '../../http/idempotency.ts';
import { payerOf, productPage } from '../subscriptions/create.ts';
import { paymentPath } from '../../../runtime/payer-links.ts';
import { route } from '../../http/route.ts';
import { CreatedIntent, exampleIntent, presentIntent } from './intent.ts';
import type { Db } from '../../../db/client.ts';
import type { ApiDeps } from '../../deps.ts';
import type { NewPayment } from '../../../db/repositories/payments/orders.ts';
import { insertPayment } from '../../../db/repositories/payments/orders.ts';

export const hostedFields = {
  ...chargeFields,
  customerDetails: optional(customerDetailsField).describe(PAYER),
  callbackUrl: httpUrl().describe(
    'Where the payer’s browser goes afterwards, with `xpay_intent_id` and `status` added. ' +
      'The parameters are unsigned and never prove a payment.',
  ),
  receiptId: optional(receiptId).describe('Your own order id.'),
  description: optional(description).describe('What the payment is for.'),
  cancelUrl,
  paymentMethods: optional(paymentMethods).describe(
    'Payment methods that the payer may use. An unavailable method falls back to CARD.',
  ),
  metadata: ownPairs,
  phoneNumberRequired,
  locale,
  productPage,
  customerId: knownCustomerId,
  storeFrontId,
  tokenise: optional(z.boolean()).describe(
    'Whether the payment method is saved for the customer. Default: false.',
  ),
};

export const createIntent = route({
  operationId: 'createIntent',
  method: 'post',
  path: '/payments/create-intent',
  tag: 'Payments',
  summary: 'Create a one-time payment',
  description: 'Send the payer to `fwdUrl`. The page stays open for 24 hours.',
  isExtension: true,
  idempotencyKey: 'honoured',
  body: {
    fields: hostedFields,
    problems: chargeProblems,
    examples: {
      'A teapot': {
        amount: 4_900,
        currency: 'USD',
        customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
        callbackUrl: 'https://merchant.example/thanks',
        receiptId: 'order-1001',
        description: 'A teapot',
      },
    },
  },
  answer: {
    description: 'The payment intent was created.',
    schema: CreatedIntent,
    examples: { Created: { ...exampleIntent, fwdUrl: 'https://pay.example/payment/mYt0kEn' } },
  },
  refusals: ['operation_not_allowed', 'resource_not_found'],
  limits: gatewayChargeProblems,
  handle: async (call, deps) => {
    const {
      amount,
      customerId,
      customerDetails = {},
      paymentMethods: wanted,
      ...order
    } = call.body;
    const { offered, unavailable } = offeredMethods(wanted ?? [], order.currency);
    const merchantId = call.merchant.id;
    return writeOnce(call, deps, async (tx) => {
      const nowAt = deps.now();
      const token = randomToken(deps.random);
      const payer = { customerId, details: customerDetails };
      const payment = {
        merchantId,
        customerId: await payerOf(tx, deps, merchantId, payer),
        amountMinor: amount,
        customerDetails,
        ...order,
        paymentMethods: wanted === undefined ? null : offered,
        nowAt,
      };
      const intentId = await writeHostedPayment(tx, deps, payment, token);
      const record = await findIntentRecord(tx, merchantId, intentId);
      invariant(record, 'the intent exists after its insert');
      return {
        answer: ok({
          ...presentIntent(record, nowAt),
          fwdUrl: `${deps.publicUrl}${paymentPath(token)}`,
          ...(unavailable.length === 0 ? {} : { unavailablePaymentMethods: unavailable }),
        }),
        // Not awaited. If the wake-up fails, the maintenance sweep wakes the endpoint queue.
        afterCommit: async () => void deps.webhooks.wakeStream({ merchantId, streamId: intentId }),
      };
    });
  },
});

/** `token`: the page's token. The caller must wake the intent's stream after the commit. */
export async function writeHostedPayment(
  tx: Db,
  { random, checkoutExpiryMs }: Pick<ApiDeps, 'random' | 'checkoutExpiryMs'>,
  payment: Omit<NewPayment, 'intentId' | 'kind' | 'checkout'>,
  token: string,
): Promise<string> {
  const { nowAt } = payment;
  const intentId = newId('in', nowAt, random);
  const checkout = { id: newId('cs', nowAt, random), token, expiresAt: nowAt + checkoutExpiryMs };
  await insertPayment(tx, { ...payment, intentId, kind: 'hosted', checkout });
  return intentId;
}
