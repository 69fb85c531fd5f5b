import { z } from 'zod';
import { listSubscriptions } from '../../../db/repositories/lists.ts';
import { findSubscription } from '../../../db/repositories/subscriptions/read.ts';
import type { SubscriptionView } from '../../../db/repositories/subscriptions/read.ts';
import type { Db } from '../../../db/client.ts';
import { ACTORS } from '../../../domain/subscription/actor.ts';
import { SUBSCRIPTION_STATUSES } from '../../../domain/subscription/state.ts';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import { businessNow } from '../../../db/repositories/subscriptions/business-time.ts';
import { upcomingCharges } from '../../../domain/subscription/upcoming.ts';
import { count, currencyCode, epochMs, minorAmount, page } from '../../answer-fields.ts';
import { found, ok } from '../../answers.ts';
import { numberText, optional } from '../../fields.ts';
import { answerPage, FILTERS, listQuery } from '../../lists.ts';
import { route } from '../../route.ts';
import type { Call } from '../../route.ts';
import {
  exampleSubscription,
  presentSubscription,
  SubscriptionAnswer,
  subscriptionIdParam,
} from './subscription.ts';

export const getSubscription = route({
  operationId: 'getSubscription',
  method: 'get',
  path: '/subscription/get-subscription/:subscriptionId',
  tag: 'Subscriptions',
  summary: 'Read a subscription',
  description:
    'Do not poll: events report every change. One subscription can be read 10 times a second. Reads of its ' +
    'next charges and its timeline count too.',
  isReadLimited: true,
  params: { subscriptionId: subscriptionIdParam },
  answer: {
    description: 'The subscription.',
    schema: SubscriptionAnswer,
    examples: [{ summary: 'ACTIVE', value: exampleSubscription }],
  },
  refusals: ['resource_not_found'],
  handle: async (call, deps) => ok(presentSubscription(deps, await subscriptionOf(deps.db, call))),
});

export const getSubscriptions = route({
  operationId: 'listSubscriptions',
  method: 'get',
  path: '/subscription',
  tag: 'Subscriptions',
  summary: 'List subscriptions',
  description: 'Newest first, in pages.',
  isExtension: true,
  query: {
    ...listQuery('sub'),
    customerId: FILTERS.customerId,
    status: optional(z.enum(SUBSCRIPTION_STATUSES)).describe('Only records with this status.'),
    receiptId: FILTERS.receiptId,
    email: FILTERS.email,
  },
  answer: {
    description: 'A page of subscriptions.',
    schema: page(SubscriptionAnswer),
    examples: [{ summary: 'The last page', value: { data: [exampleSubscription], metadata: {} } }],
  },
  handle: async (call, deps) =>
    answerPage(
      call,
      (query) => listSubscriptions(deps.db, query, call.query),
      (view) => presentSubscription(deps, view),
    ),
});

const UPCOMING_LIMIT_DEFAULT = 12;
const UPCOMING_LIMIT_MAX = 100;

/** Answers with the next charges, computed from the row. Needs no Temporal. */
export const getUpcomingCharges = route({
  operationId: 'upcomingCharges',
  method: 'get',
  path: '/subscription/upcoming/:subscriptionId',
  tag: 'Subscriptions',
  summary: 'Read the next charges',
  description: 'The charges that follow if the subscription is not changed and no payment fails.',
  isExtension: true,
  isReadLimited: true,
  params: { subscriptionId: subscriptionIdParam },
  query: {
    limit: optional(numberText(1, UPCOMING_LIMIT_MAX)).describe(
      `Maximum number of charges. Default: ${UPCOMING_LIMIT_DEFAULT}.`,
    ),
  },
  answer: {
    description: 'The next charges. Empty in CREATED, PAUSED and ENDED.',
    schema: z.object({
      data: z
        .array(
          z.object({
            date: epochMs(
              'When the charge is due. Null for an owed cycle without a planned attempt.',
            ).nullable(),
            cycleNumber: count('Number of the cycle, from 1.'),
            amount: minorAmount('Amount that will be charged.'),
            currency: currencyCode,
          }),
        )
        .meta({ description: 'Earliest first.' }),
    }),
    examples: [
      {
        summary: 'One left',
        value: {
          data: [{ date: 1_824_033_660_000, cycleNumber: 12, amount: 1_999, currency: 'USD' }],
        },
      },
    ],
  },
  refusals: ['resource_not_found'],
  handle: async (call, { db, now }) => {
    const { limit = UPCOMING_LIMIT_DEFAULT } = call.query;
    const { state } = await subscriptionOf(db, call);
    const nowAt = state.testClockId === null ? now() : await businessNow(db, refOf(call), now());
    const charges = upcomingCharges(state, limit, nowAt);
    return ok({
      data: charges.map(({ at, cycleNumber, amountMinor, currency }) => ({
        date: at,
        cycleNumber,
        amount: amountMinor,
        currency,
      })),
    });
  },
});

/** Answers with the timeline of the row. Needs no Temporal. */
export const getTimeline = route({
  operationId: 'subscriptionTimeline',
  method: 'get',
  path: '/subscription/timeline/:subscriptionId',
  tag: 'Subscriptions',
  summary: 'Read the timeline of a subscription',
  description:
    'The latest changes of the subscription with their times and reasons, in human-readable text.',
  isExtension: true,
  isReadLimited: true,
  params: { subscriptionId: subscriptionIdParam },
  answer: {
    description: 'The timeline.',
    schema: z.object({
      data: z
        .array(
          z.object({
            date: epochMs('When the change happened.'),
            what: z.string(),
            why: z.string(),
            actor: z.enum(ACTORS).nullable().meta({
              description: 'Cause of the change. `operator`: an operator of the service.',
            }),
          }),
        )
        .meta({ description: 'Oldest first. Contains only the latest entries.' }),
    }),
    examples: [
      {
        summary: 'Just created',
        value: {
          data: [
            {
              date: 1_795_176_000_000,
              what: 'created',
              why: 'the merchant asked for it',
              actor: 'merchant',
            },
          ],
        },
      },
    ],
  },
  refusals: ['resource_not_found'],
  handle: async (call, { db }) => {
    const { state } = await subscriptionOf(db, call);
    return ok({
      data: state.log.map(({ at, what, why, actor }) => ({ date: at, what, why, actor })),
    });
  },
});

type SubscriptionCall = Pick<Call<'/:subscriptionId'>, 'merchant' | 'params'>;

function refOf({ merchant, params }: SubscriptionCall): SubscriptionRef {
  return { merchantId: merchant.id, subscriptionId: params.subscriptionId };
}

/** Returns the subscription of the path's id. Throws `resource_not_found` for an unknown id. */
async function subscriptionOf(db: Db, call: SubscriptionCall): Promise<SubscriptionView> {
  const { merchantId, subscriptionId } = refOf(call);
  return found(await findSubscription(db, merchantId, subscriptionId), 'subscription');
}
