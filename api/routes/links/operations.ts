import { z } from 'zod';
import { url } from '../../openapi/answer-fields.ts';
import { bodyFields } from '../../openapi/operation.ts';
import type { Operation } from '../../openapi/operation.ts';
import { SUBSCRIPTION_NOTES } from '../subscriptions/operations.ts';
import { GenerateLinkShape } from './schema.ts';

/** Rule: IF-2.7. */
const Link = z.object({
  shortUrl: url('The link to share.'),
  disclaimer: z.string().meta({
    description:
      'Names the payment methods that cannot be used in the currency, and what is used instead; "" ' +
      'when all can.',
  }),
});

export const linkOperations: readonly Operation[] = [
  {
    operationId: 'generateSubscriptionLink',
    method: 'post',
    path: '/subscription/link/merchant/generate-link',
    tag: 'Links',
    summary: 'Generate a link to subscribe',
    description:
      'Each payer who submits the first step of the linked page uses the link once and gets a ' +
      'subscription of these terms; opening it uses nothing. The use is given back when the checkout ' +
      'ends unpaid.',
    idempotencyKey: 'listed',
    body: bodyFields(
      GenerateLinkShape,
      {
        ...SUBSCRIPTION_NOTES,
        callbackUrl:
          'Where the payer’s browser goes afterwards, with `subscription_id` and `status` added. ' +
          'Without it the payer stays on our result page.',
        metadata: 'Not accepted on a link.',
        expiryDate: 'Epoch milliseconds in the future: when the link stops to work.',
        multiUseLimit: 'How often the link can be used. Default: once.',
      },
      [
        {
          summary: 'A hundred places',
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
    ),
    answer: {
      description: 'The link works.',
      schema: Link,
      examples: [
        {
          summary: 'Cards only',
          value: {
            shortUrl: 'https://pay.example/l/Ab3dEf6hIj9k',
            disclaimer:
              'GOOGLE_PAY with USD and APPLE_PAY with USD are not available; the checkout falls back to CARD.',
          },
        },
      ],
    },
    refusals: ['resource_not_found'],
  },
];
