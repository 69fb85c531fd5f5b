import { listIntents } from '../../../db/repositories/lists.ts';
import { findIntentRecord } from '../../../db/repositories/payments/read.ts';
import { page } from '../../answer-fields.ts';
import { notFound, ok } from '../../answers.ts';
import { answerPage, listQuery } from '../../lists.ts';
import { route } from '../../route.ts';
import { examplePaidIntent, IntentAnswer, intentIdParam, presentIntent } from './intent.ts';

/** Rule: D-§7. */
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
    if (!record) throw notFound('payment intent');
    return ok(presentIntent(record, now()));
  },
});

/** Rule: D-§7. */
export const getIntents = route({
  operationId: 'listIntents',
  method: 'get',
  path: '/payments',
  tag: 'Payments',
  summary: 'List payment intents',
  description: 'Newest first, in pages.',
  isExtension: true,
  query: listQuery('in'),
  answer: {
    description: 'A page of payment intents.',
    schema: page(IntentAnswer),
    examples: [{ summary: 'The last page', value: { data: [examplePaidIntent], metadata: {} } }],
  },
  handle: async (call, { db, now }) =>
    answerPage(
      call,
      (query) => listIntents(db, query),
      (record) => presentIntent(record, now()),
    ),
});
