import { z } from 'zod';
import {
  findRefund,
  insertRefund,
  withdrawRefund,
} from '../../../db/repositories/payments/refunds.ts';
import { findIntent } from '../../../db/repositories/payments/orders.ts';
import type { Refund } from '../../../db/repositories/payments/refunds.ts';
import { DomainError, invariant } from '../../../domain/errors.ts';
import type { RefundOutcome, RefundRef } from '../../../domain/refund.ts';
import { currencyCode, epochMs, id, minorAmount } from '../../answer-fields.ts';
import { notFound, ok } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';
import { gatewayAmountProblems, idText, optional } from '../../fields.ts';
import type { Fields, Problem } from '../../http/body.ts';
import { route } from '../../http/route.ts';
import { withOrder } from './charge.ts';
import { INTENT_ID } from './intent.ts';
import type { Merchant } from '../../http/request.ts';

/** Accepts every positive integer, also as text. `insertRefund` refuses more than the intent's remaining amount. */
const refundAmount = z
  .custom<number | string>(
    (value) =>
      typeof value === 'string'
        ? /^[1-9]\d{0,15}$/.test(value) && Number.isSafeInteger(Number(value))
        : typeof value === 'number' && Number.isSafeInteger(value) && value >= 1,
    { error: 'must be an integer of at least 1 in the smallest currency unit' },
  )
  .meta({ type: 'integer', format: 'int64', minimum: 1 })
  .transform(Number);

const fields = {
  xIntentId: idText().describe('Id of the paid intent.'),
  amount: optional(refundAmount).describe(
    'In the smallest currency unit, or the same digits as a string. Default: the whole amount that is not refunded yet.',
  ),
};

export const createRefund = route({
  operationId: 'refundIntent',
  method: 'post',
  path: '/payments/merchant/refund',
  tag: 'Payments',
  summary: 'Refund a payment, fully or partly',
  description:
    'The intent must be paid. The refunds of an intent never exceed the amount that was paid. A refund that the ' +
    'gateway accepts and decides later is answered `payment_outcome_pending`; an event reports its outcome.',
  isExtension: true,
  idempotencyKey: 'honoured',
  body: {
    fields,
    refusesEmpty: ['amount'], // an absent amount refunds everything
    examples: {
      'Full refund': { xIntentId: INTENT_ID },
      'Partial refund': { xIntentId: INTENT_ID, amount: 1_000 },
    },
  },
  answer: {
    description: 'The gateway accepted the refund.',
    schema: z.object({
      refundId: id('rf', 'refund'),
      intentId: id('in', 'payment intent'),
      amount: minorAmount('Amount refunded.'),
      currency: currencyCode,
      refundedAt: epochMs('When the refund was made.'),
    }),
    examples: {
      'Partial refund': {
        refundId: 'rf_0002sSOLuS2wE6rTyU9iOpAs',
        intentId: INTENT_ID,
        amount: 1_000,
        currency: 'USD',
        refundedAt: 1_795_262_400_000,
      },
    },
  },
  refusals: ['operation_not_allowed', 'resource_not_found', 'payment_outcome_pending'],
  limits: gatewayRefundProblems,
  handle: async (call, deps) => {
    const { db, now } = deps;
    const merchantId = call.merchant.id;
    const refOf = (refundId: string) => ({ merchantId, refundId });
    return withOrder(call, deps, {
      prefix: 'rf',
      isWritten: async (refundId) => (await findRefund(db, merchantId, refundId)) !== null,
      write: async (tx, refundId) => {
        const { xIntentId: intentId, amount: amountMinor = null } = call.body;
        const order = { ...refOf(refundId), intentId, amountMinor, nowAt: now() };
        const inserted = await insertRefund(tx, order);
        if (inserted.kind !== 'refused') return;
        if (inserted.code === 'resource_not_found') throw notFound('payment intent');
        throw new DomainError(inserted.code, inserted.message);
      },
      give: (refundId) => executeRefund(deps, refOf(refundId)),
      withdraw: (refundId) => withdrawRefund(db, refOf(refundId)),
      answer: (_refundId, outcome) => ok(presentRefund(outcome)),
    });
  },
});

async function gatewayRefundProblems(
  { merchant: { id }, body }: { merchant: Merchant; body: Fields<typeof fields> },
  deps: ApiDeps,
): Promise<Problem[]> {
  const { xIntentId, amount } = body;
  const intent = amount === undefined ? null : await findIntent(deps.db, id, xIntentId);
  if (intent === null) return [];
  return gatewayAmountProblems(deps, id, { amount }, intent.currency, 'refund');
}

const DECIDED_LATER =
  'The gateway has accepted the refund and decides it later, perhaps in days. The event intent.refunded or ' +
  'intent.refund_failed reports the outcome.';

function presentRefund(outcome: ExecutedRefund) {
  if (outcome.kind === 'pending') {
    const isAccepted = 'isAccepted' in outcome;
    throw new DomainError('payment_outcome_pending', isAccepted ? DECIDED_LATER : undefined);
  }
  if (outcome.kind === 'refused') throw new DomainError('operation_not_allowed', outcome.message);
  const { id: refundId, intentId, amountMinor, currency, refundedAt } = outcome.refund;
  invariant(refundedAt !== null, 'a refund with an outcome has its time');
  return { refundId, intentId, amount: amountMinor, currency, refundedAt };
}

type ExecutedRefund =
  | Exclude<RefundOutcome, { kind: 'refunded' }>
  | { kind: 'refunded'; refund: Refund };

/** The read belongs to the execution: a refund that was made must not be answered 503. */
async function executeRefund({ db, orders }: ApiDeps, ref: RefundRef): Promise<ExecutedRefund> {
  const outcome = await orders.execute('refund', ref);
  if (outcome.kind !== 'refunded') return outcome;
  const refund = await findRefund(db, ref.merchantId, ref.refundId);
  invariant(refund, 'the refund exists after its insert');
  return { kind: 'refunded', refund };
}
