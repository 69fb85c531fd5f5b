import { z } from 'zod';
import { httpUrl, optional } from '../../fields.ts';
import type { Fields, Problem } from '../../fields.ts';
import { gatewayAmountProblems } from '../../amounts.ts';
import { inTransaction } from '../../idempotency.ts';
import { route } from '../../route.ts';
import {
  datedProblems,
  termsFields,
  termsFieldsProblems,
  termsAndOrder,
} from '../subscriptions/fields.ts';
import { expiryProblems, linkAnswer, usesFields, writeLink } from './link.ts';

/** A link accepts the fields of a new subscription, but refuses `metadata`. */
const fields = {
  ...termsFields,
  callbackUrl: optional(httpUrl()).describe(
    'Where the payer’s browser goes afterwards, with `subscription_id` and `status` added. ' +
      'Without a URL the payer stays on the result page.',
  ),
  metadata: z
    .unknown()
    .refine((value) => value === null, { error: 'is not accepted on a link' })
    .meta({ type: 'null' })
    .optional()
    .describe('Not accepted on a link.'),
  ...usesFields,
};

export const generateLink = route({
  operationId: 'generateSubscriptionLink',
  method: 'post',
  path: '/subscription/link/merchant/generate-link',
  tag: 'Links',
  summary: 'Generate a link to subscribe',
  description:
    'A payer who submits the first form of the linked page takes one use of the link and gets a ' +
    'subscription on these terms. Opening the link takes no use. An unpaid checkout expires after an hour, ' +
    'and its use can then be taken again. One IP address can take at most 5 uses in 10 minutes.',
  idempotencyKey: 'listed',
  body: {
    fields,
    problems: termsFieldsProblems,
    examples: [
      {
        summary: 'A link for 100 payers',
        value: {
          amount: 1_999,
          currency: 'USD',
          interval: 'MONTH',
          intervalCount: 1,
          cycleCount: 12,
          customerDetails: {},
          expiryDate: 1_798_761_600_000,
          multiUseLimit: 100,
        },
      },
    ],
  },
  answer: linkAnswer,
  refusals: ['operation_not_allowed', 'resource_not_found'],
  handle: async (call, deps) => {
    const { merchant, body } = call;
    const { terms, customerId, order: fieldsOfLink } = termsAndOrder(body);
    const { expiryDate, multiUseLimit = 1, metadata: _never, ...order } = fieldsOfLink;
    const { amount, upfrontAmount, currency } = body;
    const amounts = { amount, upfrontAmount };
    const problems = await gatewayAmountProblems(deps, merchant.id, amounts, currency);
    return inTransaction(call, deps, async (tx) =>
      writeLink(tx, deps, {
        amountProblems: problems,
        link: {
          merchantId: merchant.id,
          terms,
          customerId,
          ...order,
          multiUseLimit,
          expiresAt: expiryDate,
        },
        currency,
        dateProblems: (nowAt) => [
          ...datedProblems(body, nowAt),
          ...expiryProblems(expiryDate, nowAt),
          ...horizonProblems(body, nowAt),
        ],
      }),
    );
  },
});

/**
 * Returns a problem if a subscription that begins when the link expires would have a billing date in 2200 or later. A
 * subscription may begin at any instant before the expiry.
 */
function horizonProblems(body: Fields<typeof fields>, nowAt: number): Problem[] {
  const { expiryDate } = body;
  const isChecked = expiryDate > nowAt && datedProblems(body, nowAt).length === 0;
  if (!isChecked || datedProblems(body, expiryDate).length === 0) return [];
  const message = 'must leave every billing date of the subscription before the year 2200';
  return [{ field: 'expiryDate', message }];
}
