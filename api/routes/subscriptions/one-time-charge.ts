import type { Router } from '@koa/router';
import type { Db } from '../../../db/client.ts';
import { insertPayment } from '../../../db/repositories/payments.ts';
import { findChargeable } from '../../../db/repositories/subscriptions-read.ts';
import { DomainError } from '../../../domain/errors.ts';
import type { IntentRef } from '../../../domain/payment-intent.ts';
import { validateOneTimeCharge } from '../../../domain/subscription/validate-command.ts';
import { notFound } from '../../answers.ts';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { idText, optional, readFields, text } from '../../fields.ts';
import type { Fields } from '../../fields.ts';
import { amount, amountProblems, currency } from '../../payment-fields.ts';
import { answerCharge } from '../payments/charge.ts';
import { presentOneTimeCharge } from '../payments/present.ts';

const COMMENTS_MAX = 5_000;

/** Rules: IF-4.10, D-35. */
export const OneTimeChargeShape = {
  subscriptionId: idText(),
  amount,
  currency,
  comments: optional(text(COMMENTS_MAX)),
};

/** Charges the saved method once, outside the billing cycles. Rules: IF-4.10, D-35, D-40. */
export function oneTimeChargeRoutes(router: Router<RequestState>, deps: ApiDeps): void {
  router.post('/subscription/merchant/one-time-charge', async (ctx) => {
    const body = readFields(OneTimeChargeShape, ctx.state.body, (fields) =>
      amountProblems({ amount: fields.amount }, fields.currency),
    );
    await answerCharge(deps, ctx, {
      insert: (tx, ref) => insertOneTime(tx, ref, body, deps.now()),
      present: presentOneTimeCharge,
    });
  });
}

/** Locks the subscription's row until the transaction ends. Throws the reason of a refusal. */
async function insertOneTime(
  tx: Db,
  { merchantId, intentId }: IntentRef,
  body: Fields<typeof OneTimeChargeShape>,
  nowAt: number,
): Promise<void> {
  const { subscriptionId } = body;
  const subscription = await findChargeable(tx, merchantId, subscriptionId);
  if (!subscription) throw notFound('subscription');
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
    amountMinor: body.amount,
    currency: body.currency,
    customerDetails,
    comments: body.comments ?? null,
    nowAt,
  });
}
