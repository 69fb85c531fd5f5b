import { z } from 'zod';
import { listIntents } from '../../../db/repositories/lists.ts';
import { findIntentRecord } from '../../../db/repositories/payments/read.ts';
import { intentStatusAt, shownKind } from '../../../domain/payment-intent.ts';
import {
  cardFields,
  count,
  currencyCode,
  dateTime,
  declineCode,
  declineMessage,
  disputeStatus,
  epochMs,
  exampleCard,
  EXTENSION,
  id,
  intentComments,
  intentKind,
  intentStatus,
  minorAmount,
  pageAnswer,
  pairs,
  presentCard,
  unavailablePaymentMethods,
  url,
} from '../../answer-fields.ts';
import { found, ok, withoutNulls } from '../../http/request.ts';
import { answerPage, FILTERS, listQuery, SETTLED, statusFilter } from '../../lists.ts';
import { route } from '../../http/route.ts';
import { presentRefund, RefundAnswer } from './refunds.ts';
import type { Route } from '../../http/route.ts';
import type { Attempt } from '../../../db/repositories/subscriptions/attempts.ts';
import type { IntentRecord } from '../../../db/repositories/payments/read.ts';
import { formatInstant } from '../../../domain/calendar.ts';
import { declineMessage as messageOf } from '../../../domain/declines.ts';
import type { AttemptState } from '../../../domain/payment-intent.ts';
import { customerDetails } from '../../fields.ts';
import { shownProduct } from '../subscriptions/create.ts';

export const chargeStatus = z.enum(['SUCCESS', 'FAILED', 'PENDING']).meta({
  id: 'ChargeStatus',
  description:
    'PENDING: the outcome is not known yet. A call waits 25 seconds for the outcome. Repeat the call with the same ' +
    'Idempotency-Key, or wait for the event.',
});

const AttemptAnswer = z
  .object({
    attempt: count('Number of the attempt, from 1.'),
    status: chargeStatus,
    errorCode: declineCode.optional(),
    errorMessage: declineMessage.optional(),
    gatewayCode: z.string().optional().meta({
      description: 'The payment gateway’s own code of the decline. Do not show it to the payer.',
    }),
    createdAt: dateTime('When the attempt was started.'),
  })
  .meta({ id: 'ChargeAttempt', ...EXTENSION });

export const DisputeAnswer = z
  .object({
    disputeId: id('dp', 'dispute'),
    amount: minorAmount('Disputed amount, which may differ from the paid amount.'),
    currency: currencyCode,
    reason: z
      .string()
      .meta({ description: 'Reason of the payer’s bank, as the gateway names it.' }),
    status: disputeStatus,
    openedAt: dateTime('When the dispute was opened.'),
    closedAt: dateTime('When the dispute ended.').optional(),
  })
  .meta({ id: 'Dispute', ...EXTENSION });

const intentFields = {
  xIntentId: id('in', 'payment intent'),
  customerId: id('cus', 'customer'),
  kind: intentKind,
  amount: minorAmount('Amount owed.'),
  currency: currencyCode,
  presentmentCurrency: currencyCode,
  receiptId: z.string().optional(),
  customerDetails,
  description: z.string().optional(),
  callbackUrl: url('Where the payer’s browser goes afterwards.').optional(),
  cancelUrl: url('Where the payer’s browser goes when the payer cancels.').optional(),
  createdAt: dateTime('When the intent was created.'),
  status: intentStatus.meta({
    description:
      'PENDING: the outcome of an attempt is unknown. A later attempt may change FAILED to SUCCESS. CANCELLED is ' +
      'final. A refund that fails later changes REFUNDED to SUCCESS or PARTIALLY_REFUNDED.',
  }),
  succeededAt: epochMs('When the intent was paid.').optional(),
  subscriptionId: id('sub', 'subscription that the intent belongs to').optional(),
  cycleNumber: count('Number of the billing cycle, from 1. Only of a cycle.').optional(),
  metadata: pairs.optional(),
  productPage: shownProduct.optional(),
  comments: intentComments.optional(),
  refundedAmount: minorAmount('Amount refunded so far.').optional(),
  paymentMethod: cardFields.paymentMethod.nullable().meta({
    description: 'Payment method of the latest attempt. Null when none is known yet.',
  }),
  cardMetadata: cardFields.cardMetadata.nullable().meta({
    description: 'Card of the latest attempt. For a paid intent, this card paid.',
  }),
  chargeAttempts: z.array(AttemptAnswer).meta({ description: 'Oldest first.' }),
  succeededCharge: AttemptAnswer.optional(),
  refunds: z.array(RefundAnswer).optional().meta({ description: 'Oldest first.' }),
  disputes: z.array(DisputeAnswer).optional().meta({ description: 'Oldest first.' }),
};

const IntentAnswer = z.object(intentFields).meta({ id: 'PaymentIntent', ...EXTENSION });

export const CreatedIntent = z
  .object({
    ...intentFields,
    fwdUrl: url('Where to send the payer to pay.'),
    unavailablePaymentMethods,
  })
  .meta({ id: 'CreatedPaymentIntent', ...EXTENSION });

export function presentIntent(record: IntentRecord, nowAt: number) {
  const { intent, method, order, attempts, refunds, disputes } = record;
  const succeeded = attempts.find(({ state }) => state === 'SUCCEEDED');
  const optional = {
    receiptId: intent.receiptId,
    description: intent.description ?? order?.description ?? null,
    callbackUrl: intent.callbackUrl ?? order?.callbackUrl ?? null,
    cancelUrl: intent.cancelUrl ?? order?.cancelUrl ?? null,
    succeededAt: intent.succeededAt,
    subscriptionId: intent.subscriptionId,
    cycleNumber: intent.cycleNumber,
    metadata: intent.metadata,
    productPage: intent.productPage,
    comments: intent.comments,
    refundedAmount: intent.refundedMinor === 0 ? null : intent.refundedMinor,
    succeededCharge: succeeded === undefined ? null : presentAttempt(succeeded),
    refunds: refunds.length === 0 ? null : refunds.map(presentRefund),
    disputes: disputes.length === 0 ? null : disputes.map(presentDispute),
  };
  return {
    xIntentId: intent.id,
    customerId: intent.customerId,
    kind: shownKind(intent, record.hasUpfrontAmount),
    amount: intent.amountMinor,
    currency: intent.currency,
    presentmentCurrency: intent.presentmentCurrency,
    customerDetails: intent.customerDetails,
    createdAt: formatInstant(intent.createdAt),
    status: intentStatusAt(intent, nowAt),
    ...withoutNulls(optional),
    ...(method ? presentCard(method) : { paymentMethod: null, cardMetadata: null }),
    chargeAttempts: attempts.map(presentAttempt),
  };
}

export const ATTEMPT_STATUS: Readonly<Record<AttemptState, 'PENDING' | 'SUCCESS' | 'FAILED'>> = {
  SENDING: 'PENDING',
  UNSENT: 'PENDING',
  UNKNOWN: 'PENDING',
  REVIEW: 'PENDING',
  SUCCEEDED: 'SUCCESS',
  DECLINED: 'FAILED',
};

function presentAttempt({ attemptNumber, state, errorCode, gatewayCode, createdAt }: Attempt) {
  return {
    attempt: attemptNumber,
    status: ATTEMPT_STATUS[state],
    ...withoutNulls({ errorCode, errorMessage: messageOf(errorCode), gatewayCode }),
    createdAt: formatInstant(createdAt),
  };
}

export function presentDispute(dispute: IntentRecord['disputes'][number]) {
  const { id: disputeId, amountMinor, currency, reason, status, openedAt, closedAt } = dispute;
  return {
    disputeId,
    amount: amountMinor,
    currency,
    reason,
    status,
    openedAt: formatInstant(openedAt),
    ...(closedAt === null ? {} : { closedAt: formatInstant(closedAt) }),
  };
}

export const INTENT_ID = 'in_0002sSOLuRz8kF5dGhJ3lMnB';

export const intentIdParam = { description: 'Id of a payment intent.', example: INTENT_ID };

export const exampleIntent = {
  xIntentId: INTENT_ID,
  customerId: 'cus_0002sSOLtvYJpjM0P8rC2uQe',
  kind: 'hosted' as const,
  amount: 4_900,
  currency: 'USD',
  presentmentCurrency: 'USD',
  receiptId: 'order-1001',
  customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
  description: 'A teapot',
  callbackUrl: 'https://merchant.example/thanks',
  createdAt: '2026-11-20T12:00:00.000Z',
  status: 'CREATED' as const,
  paymentMethod: null,
  cardMetadata: null,
  chargeAttempts: [],
};

const attempt = {
  attempt: 1,
  status: 'SUCCESS' as const,
  createdAt: '2026-11-20T12:01:00.000Z',
};

const examplePaidIntent = {
  ...exampleIntent,
  status: 'SUCCESS' as const,
  succeededAt: 1_795_176_061_000,
  ...exampleCard,
  chargeAttempts: [attempt],
  succeededCharge: attempt,
};

export const getIntent = route({
  operationId: 'getIntent',
  method: 'get',
  path: '/payments/v2/get-intent/:xIntentId',
  tag: 'Payments',
  summary: 'Read a payment intent',
  description:
    'Reads every kind of intent: a billing cycle, a one-time or tokenised charge, a hosted payment.',
  isExtension: true,
  params: { xIntentId: intentIdParam },
  answer: {
    description: 'The intent with all its attempts.',
    schema: IntentAnswer,
    examples: { Paid: examplePaidIntent },
  },
  refusals: ['resource_not_found'],
  handle: async ({ merchant, params }, { db, now }) => {
    const record = await findIntentRecord(db, merchant.id, params.xIntentId);
    return ok(presentIntent(found(record, 'payment intent'), now()));
  },
});

export const getIntentV1: Route = {
  ...getIntent,
  operationId: 'getIntentV1',
  path: '/payments/get-intent/:xIntentId',
  summary: 'Read a payment intent by its older path',
  description: 'Answers like `GET /payments/v2/get-intent/{xIntentId}`.',
};

export const getIntents = route({
  operationId: 'listIntents',
  method: 'get',
  path: '/payments',
  tag: 'Payments',
  summary: 'List payment intents',
  description:
    'Newest first, in pages. For the payments of a month: `settledAfter`, `settledBefore` and `sort`.',
  isExtension: true,
  query: {
    ...listQuery('in'),
    ...SETTLED,
    ...FILTERS,
    status: statusFilter(intentStatus.options),
  },
  answer: pageAnswer('A page of payment intents.', IntentAnswer, examplePaidIntent),
  handle: async (call, { db, now }) =>
    answerPage(
      call,
      (query) => listIntents(db, query, call.query, now()),
      (record) => presentIntent(record, now()),
    ),
});
