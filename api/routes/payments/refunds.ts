import { z } from 'zod';
import { listRefunds } from '../../../db/repositories/lists.ts';
import type { Refund } from '../../../db/repositories/payments/refunds.ts';
import { formatInstant } from '../../../domain/calendar.ts';
import { REFUND_STATES } from '../../../domain/refund.ts';
import {
  currencyCode,
  dateTime,
  epochMs,
  EXTENSION,
  id,
  minorAmount,
  pageAnswer,
} from '../../answer-fields.ts';
import { idText, optional } from '../../fields.ts';
import { answerPage, listQuery, SETTLED, statusFilter } from '../../lists.ts';
import { route } from '../../http/route.ts';

export const RefundAnswer = z
  .object({
    refundId: id('rf', 'refund'),
    intentId: id('in', 'payment intent'),
    amount: minorAmount('Amount of the refund.'),
    currency: currencyCode,
    status: z.enum(REFUND_STATES),
    createdAt: dateTime('When the refund was ordered.'),
    refundedAt: epochMs(
      'When the gateway made the refund. Absent before, and if it failed later.',
    ).optional(),
    isLateCharge: z.boolean().optional().meta({
      description:
        'True if it returns a charge that came to light after the attempt had been settled as not paid.',
    }),
  })
  .meta({ id: 'Refund', ...EXTENSION });

export function presentRefund({ id: refundId, intentId, currency, ...refund }: Refund) {
  return {
    refundId,
    intentId,
    amount: refund.amountMinor,
    currency,
    status: refund.state,
    createdAt: formatInstant(refund.createdAt),
    ...(refund.refundedAt === null ? {} : { refundedAt: refund.refundedAt }),
    ...(refund.lateAttemptId === null ? {} : { isLateCharge: true }),
  };
}

export const getRefunds = route({
  operationId: 'listRefunds',
  method: 'get',
  path: '/refund',
  tag: 'Payments',
  summary: 'List refunds',
  description:
    'Newest first, in pages. For the refunds of a month: `settledAfter`, `settledBefore` and `sort`.',
  isExtension: true,
  query: {
    ...listQuery('rf'),
    ...SETTLED,
    intentId: optional(idText()).describe('Only refunds of this payment intent.'),
    status: statusFilter(REFUND_STATES),
  },
  answer: pageAnswer('A page of refunds.', RefundAnswer, {
    refundId: 'rf_0002sSOLuS2wE6rTyU9iOpAs',
    intentId: 'in_0002sSOLuRz8kF5dGhJ3lMnB',
    amount: 1_000,
    currency: 'USD',
    status: 'SUCCEEDED',
    createdAt: '2026-11-21T12:00:00.000Z',
    refundedAt: 1_795_262_400_000,
  }),
  handle: async (call, { db }) =>
    answerPage(call, (query) => listRefunds(db, query, call.query), presentRefund),
});
