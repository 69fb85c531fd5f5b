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
      'Names the payment methods that are not available in the currency, and the fallback. Empty when ' +
      'all are available.',
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
      'A payer who submits the first step of the linked page takes one use of the link and gets a ' +
      'subscription on these terms. Opening the link takes no use. The use is free again when the ' +
      'checkout ends unpaid.',
    idempotencyKey: 'listed',
    body: bodyFields(
      GenerateLinkShape,
      {
        ...SUBSCRIPTION_NOTES,
        callbackUrl:
          'Where the payer’s browser goes afterwards, with `subscription_id` and `status` added. ' +
          'Without it the payer stays on our result page.',
        metadata: 'Not accepted on a link.',
        expiryDate: 'When the link expires. Epoch milliseconds in the future.',
        multiUseLimit: 'How often the link can be used. Default: 1.',
      },
      [
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
    ),
    answer: {
      description: 'The link was created.',
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
