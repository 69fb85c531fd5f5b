import { z } from 'zod';
import { hasMethod } from '../../../db/repositories/customers/payment-methods.ts';
import { hasSubscription } from '../../../db/repositories/subscriptions/read.ts';
import { DECLINES } from '../../../domain/declines.ts';
import type { DeclineCode } from '../../../domain/declines.ts';
import { nothing } from '../../answer-fields.ts';
import { notFound, ok } from '../../answers.ts';
import { idText, optional, wholeNumber } from '../../fields.ts';
import { withOutcome } from '../../idempotency.ts';
import { route } from '../../route.ts';

const COUNT_MAX = 100;

/** Makes the sandbox gateway decline the next charges of a subscription or of a payment method. Rule: D-61. */
export const declineNext = route({
  operationId: 'declineNext',
  method: 'post',
  path: '/test-helpers/decline-next',
  tag: 'Test helpers',
  summary: 'Decline the next charges',
  description:
    'The sandbox gateway declines the next `count` charges of a subscription or of a saved payment method with ' +
    '`code`. Give either `subscriptionId` or `pmId`. Test credentials only.',
  isExtension: true,
  isTestOnly: true,
  idempotencyKey: 'honoured',
  body: {
    fields: {
      subscriptionId: optional(idText()).describe('Id of the subscription.'),
      pmId: optional(idText()).describe('Id of the saved payment method.'),
      code: z
        .enum(Object.keys(DECLINES) as [DeclineCode])
        .describe('The `errorCode` of the declined charges.'),
      count: optional(
        wholeNumber(1)
          .refine((count) => count <= COUNT_MAX, { error: `must be at most ${COUNT_MAX}` })
          .meta({ maximum: COUNT_MAX }),
      ).describe('Number of charges to decline. Default: 1.'),
    },
    problems: ({ subscriptionId, pmId }) =>
      (subscriptionId === undefined) === (pmId === undefined)
        ? [{ field: 'body', message: 'must have either subscriptionId or pmId' }]
        : [],
    examples: [
      {
        summary: 'The next renewal',
        value: { subscriptionId: 'sub_0002sSOLuQx1oB9bUeVtYw3c', code: 'insufficient_funds' },
      },
    ],
  },
  answer: {
    description: 'The next charges will be declined.',
    schema: nothing,
    examples: [{ summary: 'Done', value: {} }],
  },
  refusals: ['operation_not_allowed', 'resource_not_found'],
  handle: async (call, deps) => {
    const { subscriptionId = null, pmId: paymentMethodId = null, code, count = 1 } = call.body;
    const merchantId = call.merchant.id;
    return withOutcome(call, deps, async () => {
      if (
        subscriptionId !== null &&
        !(await hasSubscription(deps.db, merchantId, subscriptionId))
      ) {
        throw notFound('subscription');
      }
      if (paymentMethodId !== null && !(await hasMethod(deps.db, merchantId, paymentMethodId))) {
        throw notFound('payment method');
      }
      await deps.declineNext({ subscriptionId, paymentMethodId, code, count });
      return ok({});
    });
  },
});
