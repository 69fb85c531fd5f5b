import { z } from 'zod';
import { listIntents } from '../../../db/repositories/lists.ts';
import { findIntentRecord } from '../../../db/repositories/payments/read.ts';
import { INTENT_STATUSES } from '../../../domain/payment-intent.ts';
import { page } from '../../answer-fields.ts';
import { found, ok } from '../../answers.ts';
import { optional } from '../../fields.ts';
import { answerPage, FILTERS, listQuery } from '../../lists.ts';
import { route } from '../../route.ts';
import type { Route } from '../../route.ts';
import { examplePaidIntent, IntentAnswer, intentIdParam, presentIntent } from './intent.ts';

/** Answers with one intent and its attempts. */
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
    examples: [{ summary: 'Paid', value: examplePaidIntent }],
  },
  refusals: ['resource_not_found'],
  handle: async ({ merchant, params }, { db, now }) => {
    const record = await findIntentRecord(db, merchant.id, params.xIntentId);
    return ok(presentIntent(found(record, 'payment intent'), now()));
  },
});

/** The older path of {@link getIntent}. */
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
  description: 'Newest first, in pages.',
  isExtension: true,
  query: {
    ...listQuery('in'),
    ...FILTERS,
    status: optional(z.enum(INTENT_STATUSES)).describe('Only records with this status.'),
  },
  answer: {
    description: 'A page of payment intents.',
    schema: page(IntentAnswer),
    examples: [{ summary: 'The last page', value: { data: [examplePaidIntent], metadata: {} } }],
  },
  handle: async (call, { db, now }) =>
    answerPage(
      call,
      (query) => listIntents(db, query, call.query, now()),
      (record) => presentIntent(record, now()),
    ),
});
