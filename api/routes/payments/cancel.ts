import { cancelHostedPayment, findIntent } from '../../../db/repositories/payments/orders.ts';
import { DomainError } from '../../../domain/errors.ts';
import { doneAnswer } from '../../answer-fields.ts';
import { notFound, ok } from '../../http/request.ts';
import { executeCommand } from '../subscriptions/command-routes.ts';
import { idText, optional } from '../../fields.ts';
import { problemsError } from '../../http/body.ts';
import { executeOnce, writeOnce } from '../../http/idempotency.ts';
import { route } from '../../http/route.ts';
import { INTENT_ID, intentIdParam } from './intent.ts';

/** The first intent of a subscription is cancelled by its workflow, which ends the subscription. */
export const cancelIntent = route({
  operationId: 'cancelIntent',
  method: 'post',
  path: '/payments/cancel/:xIntentId',
  tag: 'Payments',
  summary: 'Cancel a payment intent',
  description:
    'The intent must never have been paid, must have no attempt in flight, and its checkout must be ' +
    'open. Cancelling the first intent of a subscription ends the subscription.',
  idempotencyKey: 'listed',
  params: { xIntentId: intentIdParam },
  body: {
    fields: { xIntentId: optional(idText()).describe('Must equal the id in the path.') },
    examples: { 'By id': { xIntentId: INTENT_ID } },
    isOptional: true,
  },
  answer: doneAnswer('The intent is CANCELLED.'),
  refusals: ['operation_not_allowed', 'resource_not_found', 'payment_outcome_pending'],
  handle: async (call, deps) => {
    const merchantId = call.merchant.id;
    const intentId = call.params.xIntentId;
    if ((call.body.xIntentId ?? intentId) !== intentId) {
      throw problemsError([{ field: 'xIntentId', message: 'must equal the id in the path' }]);
    }
    const intent = await findIntent(deps.db, merchantId, intentId);
    const { subscriptionId = null, cycleNumber = null } = intent ?? {};
    if (subscriptionId !== null && cycleNumber === 1) {
      return executeOnce(call, deps, async ({ commandId }) => {
        const command = { kind: 'cancel', commandId, reason: 'checkout_cancelled' } as const;
        await executeCommand(deps.workflows, { merchantId, subscriptionId }, command);
        return ok({});
      });
    }
    return writeOnce(call, deps, async (tx) => {
      if (!intent) throw notFound('payment intent');
      const cancelled = await cancelHostedPayment(tx, { merchantId, intentId }, deps.now());
      if (!cancelled.ok) throw new DomainError('operation_not_allowed', cancelled.message);
      return { answer: ok({}) };
    });
  },
});
