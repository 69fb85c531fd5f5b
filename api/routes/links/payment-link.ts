import { httpUrl, optional } from '../../fields.ts';
import { gatewayAmountProblems } from '../../amounts.ts';
import { inTransaction } from '../../idempotency.ts';
import { offeredMethods } from '../../../domain/payment-method.ts';
import { chargeProblems, comments } from '../../payment-fields.ts';
import { route } from '../../route.ts';
import { hostedFields } from '../payments/create-intent.ts';
import { expiryProblems, linkAnswer, usesFields, writeLink } from './link.ts';

export const generatePaymentLink = route({
  operationId: 'generatePaymentLink',
  method: 'post',
  path: '/link/merchant/generate-link',
  tag: 'Links',
  summary: 'Generate a link to pay once',
  description:
    'A payer who submits the first form of the linked page takes one use of the link and gets a hosted ' +
    'payment on these terms. Opening the link takes no use. If the payment is cancelled, or is not made ' +
    'within an hour, its use can be taken again. One IP address can take at most 5 uses in 10 minutes.',
  isExtension: true,
  idempotencyKey: 'honoured',
  body: {
    fields: {
      ...hostedFields,
      callbackUrl: optional(httpUrl()).describe(
        'Where the payer’s browser goes afterwards, with `xpay_intent_id` and `status` added. ' +
          'Without a URL the payer stays on the result page.',
      ),
      comments: optional(comments).describe('Your own note, which every payment of the link gets.'),
      ...usesFields,
    },
    problems: chargeProblems,
    examples: [
      {
        summary: 'A link for 100 payers',
        value: {
          amount: 4_900,
          currency: 'USD',
          description: 'A teapot',
          expiryDate: 1_798_761_600_000,
          multiUseLimit: 100,
        },
      },
    ],
  },
  answer: linkAnswer,
  refusals: ['operation_not_allowed', 'resource_not_found'],
  handle: async (call, deps) => {
    const { amount, currency, comments: note, metadata, storeFrontId, tokenise } = call.body;
    const {
      customerDetails = {},
      paymentMethods: wanted,
      expiryDate,
      multiUseLimit = 1,
    } = call.body;
    const { customerId, receiptId, description, callbackUrl, cancelUrl } = call.body;
    const paymentMethods = wanted === undefined ? null : offeredMethods(wanted, currency).offered;
    const problems = await gatewayAmountProblems(deps, call.merchant.id, { amount }, currency);
    return inTransaction(call, deps, async (tx) =>
      writeLink(tx, deps, {
        amountProblems: problems,
        link: {
          merchantId: call.merchant.id,
          payment: {
            amountMinor: amount,
            currency,
            comments: note,
            metadata,
            paymentMethods,
            storeFrontId,
            tokenise,
          },
          customerId,
          customerDetails,
          receiptId,
          description,
          callbackUrl,
          cancelUrl,
          phoneNumberRequired: call.body.phoneNumberRequired,
          locale: call.body.locale,
          multiUseLimit,
          expiresAt: expiryDate,
        },
        currency,
        wanted,
        dateProblems: (nowAt) => expiryProblems(expiryDate, nowAt),
      }),
    );
  },
});
