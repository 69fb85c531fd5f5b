import { z } from 'zod';
import { findMethod } from '../../../db/repositories/customers/payment-methods.ts';
import { findChargeable } from '../../../db/repositories/subscriptions/row.ts';
import { DECLINES } from '../../../domain/declines.ts';
import type { DeclineCode } from '../../../domain/declines.ts';
import { DomainError } from '../../../domain/errors.ts';
import { adviceFields, adviceProblems, statedAdvice } from '../../advice.ts';
import { doneAnswer } from '../../answer-fields.ts';
import { found, ok } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';
import { idText, optional, wholeNumber } from '../../fields.ts';
import { executeOnce } from '../../http/idempotency.ts';
import { route } from '../../http/route.ts';

const COUNT_MAX = 100;
const NOT_SANDBOX =
  'Only the sandbox gateway declines charges on request, and these charges are made at another gateway. ' +
  'Use a test card of that gateway.';

export const declineNext = route({
  operationId: 'declineNext',
  method: 'post',
  path: '/test-helpers/decline-next',
  tag: 'Test helpers',
  summary: 'Decline the next charges',
  description:
    'The sandbox gateway declines the next `count` charges of a subscription or of a saved payment method with ' +
    '`code`. Give either `subscriptionId` or `pmId`. A payment method at another ' +
    'gateway is refused. Test credentials only.',
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
      ...adviceFields,
    },
    problems: ({ subscriptionId, pmId, ...given }) => [
      ...((subscriptionId === undefined) === (pmId === undefined)
        ? [{ field: 'body', message: 'must have either subscriptionId or pmId' }]
        : []),
      ...adviceProblems(given),
    ],
    examples: {
      'The next renewal': {
        subscriptionId: 'sub_0002sSOLuQx1oB9bUeVtYw3c',
        code: 'insufficient_funds',
      },
    },
  },
  answer: doneAnswer('The next charges will be declined.'),
  refusals: ['operation_not_allowed', 'resource_not_found'],
  handle: async (call, deps) => {
    const { subscriptionId = null, pmId: paymentMethodId = null, code, count = 1 } = call.body;
    const merchantId = call.merchant.id;
    return executeOnce(call, deps, async () => {
      const gateway = await gatewayOf(deps, merchantId, call.body);
      // The name of an account at another gateway has a colon: `<gateway>:<account>`.
      if (gateway.includes(':')) throw new DomainError('operation_not_allowed', NOT_SANDBOX);
      const advice = statedAdvice(call.body);
      await deps.declineNext({ subscriptionId, paymentMethodId, code, count, advice });
      return ok({});
    });
  },
});

async function gatewayOf(
  { db, gateways }: ApiDeps,
  merchantId: string,
  { subscriptionId, pmId }: { subscriptionId?: string | undefined; pmId?: string | undefined },
): Promise<string> {
  let methodId = pmId ?? null;
  if (subscriptionId !== undefined) {
    const subscription = found(
      await findChargeable(db, merchantId, subscriptionId),
      'subscription',
    );
    methodId = subscription.state.paymentMethodId;
    if (methodId === null) return (await gateways.forNewMethods(merchantId)).name;
  }
  const method = found(await findMethod(db, merchantId, methodId ?? ''), 'payment method');
  return method.gateway;
}
