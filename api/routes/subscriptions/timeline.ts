import { z } from 'zod';
import { listEntries } from '../../../db/repositories/subscriptions/entries.ts';
import { textOf } from '../../../domain/subscription/entries.ts';
import { actor, epochMs, pageAnswer, subscriptionStatus } from '../../answer-fields.ts';
import { answerNumbered, numberedQuery } from '../../lists.ts';
import { route } from '../../http/route.ts';
import { expectSubscription, refOf, subscriptionIdParam } from './read.ts';

export const getTimeline = route({
  operationId: 'subscriptionTimeline',
  method: 'get',
  path: '/subscription/timeline/:subscriptionId',
  tag: 'Subscriptions',
  summary: 'Read the timeline of a subscription',
  description:
    'Every change of the subscription with its time and reason, in human-readable text, oldest first. No entry is ever ' +
    'changed or deleted.',
  isExtension: true,
  isReadLimited: true,
  params: { subscriptionId: subscriptionIdParam },
  query: numberedQuery('entries'),
  answer: pageAnswer(
    'A page of the timeline.',
    z.object({
      date: epochMs('When the change happened.'),
      what: z.string(),
      why: z.string(),
      status: subscriptionStatus.meta({ description: 'The status after it.' }),
      actor: actor.meta({
        description: 'Cause of the change. `operator`: an operator of the service.',
      }),
    }),
    {
      date: 1_795_176_000_000,
      what: 'created',
      why: 'the merchant asked for it',
      status: 'CREATED',
      actor: 'merchant',
    },
    { summary: 'Just created', order: 'Oldest first.' },
  ),
  refusals: ['resource_not_found'],
  handle: async (call, { db }) => {
    const ref = refOf(call);
    await expectSubscription(db, ref);
    return answerNumbered(
      call,
      ({ after, limit }) => listEntries(db, ref, { afterVersion: after, limit }),
      ({ version }) => version,
      (entry) => ({
        date: entry.at,
        ...textOf(entry),
        status: entry.statusAfter,
        actor: entry.actor,
      }),
    );
  },
});
