import { z } from 'zod';
import { listIntents } from '../../../db/repositories/lists.ts';
import { findIntentRecord } from '../../../db/repositories/payments/read.ts';
import { INTENT_STATUSES } from '../../../domain/payment-intent.ts';
import { page } from '../../answer-fields.ts';
import { notFound, ok } from '../../answers.ts';
import type { ApiDeps } from '../../deps.ts';
import { optional } from '../../fields.ts';
import { answerPage, FILTERS, listQuery } from '../../lists.ts';
import { route } from '../../route.ts';
import type { Call } from '../../route.ts';
import { examplePaidIntent, IntentAnswer, intentIdParam, presentIntent } from './intent.ts';

const answer = {
  description: 'The intent with all its attempts.',
  schema: IntentAnswer,
  examples: [{ summary: 'Paid', value: examplePaidIntent }],
};

type IntentCall = Call<'/:xIntentId'>;

async function readIntent({ merchant, params }: IntentCall, { db, now }: ApiDeps) {
  const record = await findIntentRecord(db, merchant.id, params.xIntentId);
  if (!record) throw notFound('payment intent');
  return ok(presentIntent(record, now()));
}

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
  answer,
  refusals: ['resource_not_found'],
  handle: readIntent,
});

/** The older path of {@link getIntent}. */
export const getIntentV1 = route({
  operationId: 'getIntentV1',
  method: 'get',
  path: '/payments/get-intent/:xIntentId',
  tag: 'Payments',
  summary: 'Read a payment intent by its older path',
  description: 'Answers like `GET /payments/v2/get-intent/{xIntentId}`.',
  isExtension: true,
  params: { xIntentId: intentIdParam },
  answer,
  refusals: ['resource_not_found'],
  handle: readIntent,
});

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
