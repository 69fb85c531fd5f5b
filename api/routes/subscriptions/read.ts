import { z } from 'zod';
import { listSubscriptions } from '../../../db/repositories/lists.ts';
import { loadNoticeRules } from '../../../db/repositories/merchants/settings.ts';
import { findSubscription } from '../../../db/repositories/subscriptions/row.ts';
import type { SubscriptionView } from '../../../db/repositories/subscriptions/row.ts';
import type { Db } from '../../../db/client.ts';
import {
  cancelAt,
  isBilled,
  nextPaymentAt,
  remainingCycleCount,
  resumeAt,
} from '../../../domain/subscription/state.ts';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import { businessNow } from '../../../db/repositories/subscriptions/business-time.ts';
import { NOTICE_TYPES } from '../../../domain/events.ts';
import { cardExpiresAt } from '../../../domain/payment-method.ts';
import { upcomingCharges } from '../../../domain/subscription/upcoming.ts';
import {
  added,
  cardFields,
  count,
  currencyCode,
  dateTime,
  endReason,
  epochMs,
  exampleCard,
  EXTENSION,
  id,
  minorAmount,
  pageAnswer,
  pairs,
  presentCard,
  subscriptionStatus,
  url,
  SUBSCRIPTION_ID,
} from '../../answer-fields.ts';
import { found, ok, withoutNulls } from '../../http/request.ts';
import { answerPage, FILTERS, limitOr, listQuery, statusFilter } from '../../lists.ts';
import { route } from '../../http/route.ts';
import { interval } from './create.ts';
import type { Call } from '../../http/route.ts';
import { formatInstant } from '../../../domain/calendar.ts';
import type { ApiDeps } from '../../deps.ts';
import { updateMethodLink } from '../../../runtime/payer-links.ts';

const SubscriptionAnswer = z
  .object({
    subscriptionId: id('sub', 'subscription'),
    customerId: id('cus', 'customer').meta(EXTENSION),
    interval,
    intervalCount: count('Number of intervals between two billings.'),
    cycleCount: count('Total number of billing cycles, including the first.'),
    remainingCycleCount: count('Number of billing cycles that are not paid yet.'),
    currency: currencyCode,
    amount: minorAmount('Amount of each cycle.'),
    presentmentCurrency: currencyCode,
    createdAt: dateTime(
      'When the subscription was created: real time, or the time of its test clock.',
    ),
    status: subscriptionStatus,
    nextPaymentDate: epochMs(
      'The next automatic retry of a declined cycle, if one is planned. Else in TRIALING the end of the trial, and ' +
        'in ACTIVE the next due date. Null in the other cases, and after a cancellation at the end of the period.',
    )
      .nullable()
      .meta(EXTENSION),
    currentPeriodEnd: epochMs(
      'End of the trial, then of the period that the payer has paid. Null before both.',
    )
      .nullable()
      .meta(EXTENSION),
    cancelAt: added(
      epochMs('When the subscription ends after a cancellation at the end of its period.'),
    ),
    resumeAt: added(epochMs('When the pause ends without an unpause.')),
    endReason: added(endReason, 'Only when ENDED.'),
    description: z.string().optional(),
    upfrontAmount: minorAmount('Amount of the first cycle, instead of `amount`.').optional(),
    trialPeriodCount: count('Number of trial periods before the first cycle.').optional(),
    trialPeriodInterval: interval.optional(),
    metadata: pairs.optional(),
    receiptId: added(z.string(), 'Your own order id.'),
    testClockId: added(id('clk', 'test clock')),
    updatePaymentMethodLink: url(
      'Page where the payer replaces the payment method, or confirms a payment with the bank. The link ' +
        'works for 30 days. Present only in TRIALING, ACTIVE and UNPAID, and not for a read-only credential.',
    ).optional(),
    paymentMetadata: z
      .object({ ...cardFields, cardMetadata: cardFields.cardMetadata.optional() })
      .optional()
      .meta({ description: 'The payment method. Absent while CREATED.' }),
  })
  .meta({ id: 'Subscription' });

type Deps = Pick<ApiDeps, 'publicUrl' | 'sessionKey' | 'now'>;

/** A read-only credential gets no link with which the payment method could be replaced. */
function presentSubscription(
  deps: Deps,
  view: SubscriptionView,
  { isReadOnly }: { isReadOnly: boolean },
) {
  const { state, status, paymentMethod } = view;
  const { terms } = state;
  const isMethodShown = status !== 'CREATED' && paymentMethod !== null;
  return {
    subscriptionId: view.id,
    customerId: view.customerId,
    interval: terms.interval,
    intervalCount: terms.intervalCount,
    cycleCount: terms.cycleCount,
    remainingCycleCount: remainingCycleCount(state),
    currency: terms.currency,
    amount: terms.amountMinor,
    presentmentCurrency: view.presentmentCurrency,
    createdAt: formatInstant(view.createdAt),
    status,
    nextPaymentDate: nextPaymentAt(state),
    currentPeriodEnd: state.currentPeriodEndAt,
    ...withoutNulls({
      cancelAt: cancelAt(state),
      resumeAt: resumeAt(state),
      endReason: state.endReason,
      description: view.description,
      upfrontAmount: terms.upfrontAmountMinor,
      trialPeriodCount: terms.trial?.count ?? null,
      trialPeriodInterval: terms.trial?.interval ?? null,
      metadata: view.metadata,
      receiptId: view.receiptId,
      testClockId: view.testClockId,
      updatePaymentMethodLink:
        isBilled(status) && !isReadOnly ? updateMethodLink(deps, state, deps.now()) : null,
      paymentMetadata: isMethodShown ? presentCard(paymentMethod) : null,
    }),
  };
}

export const subscriptionIdParam = {
  description: 'Id of a subscription.',
  example: SUBSCRIPTION_ID,
};

const exampleSubscription = {
  subscriptionId: SUBSCRIPTION_ID,
  customerId: 'cus_0002sSOLtvYJpjM0P8rC2uQe',
  interval: 'MONTH' as const,
  intervalCount: 1,
  cycleCount: 12,
  remainingCycleCount: 11,
  currency: 'USD',
  amount: 1_999,
  presentmentCurrency: 'USD',
  createdAt: '2026-11-20T12:00:00.000Z',
  status: 'ACTIVE' as const,
  nextPaymentDate: 1_797_768_060_000,
  currentPeriodEnd: 1_797_768_060_000,
  description: 'Tea of the month',
  metadata: { plan: 'oolong' },
  updatePaymentMethodLink: 'https://pay.example/update-method/eyJ2IjoxfQ.c2lnbmF0dXJl',
  paymentMetadata: exampleCard,
};

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
    examples: { ACTIVE: exampleSubscription },
  },
  refusals: ['resource_not_found'],
  handle: async (call, deps) =>
    ok(presentSubscription(deps, await subscriptionOf(deps.db, call), call.merchant)),
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
    status: statusFilter(subscriptionStatus.options),
    receiptId: FILTERS.receiptId,
    email: FILTERS.email,
  },
  answer: pageAnswer('A page of subscriptions.', SubscriptionAnswer, exampleSubscription),
  handle: async (call, deps) =>
    answerPage(
      call,
      (query) => listSubscriptions(deps.db, query, call.query),
      (view) => presentSubscription(deps, view, call.merchant),
    ),
});

const UPCOMING_LIMIT_DEFAULT = 12;

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
    limit: limitOr(UPCOMING_LIMIT_DEFAULT, 'charges'),
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
            chargeFrom: epochMs(
              'With `chargeUntil`: the time in which the charge is made, because many fall due at one time or a notice was late. Absent if it is made at `date`.',
            ).optional(),
            chargeUntil: epochMs('See `chargeFrom`.').optional(),
            cycleNumber: count('Number of the cycle, from 1.'),
            amount: minorAmount('Amount that will be charged.'),
            currency: currencyCode,
            notices: z
              .array(
                z.object({ eventType: z.enum(NOTICE_TYPES), date: epochMs('When it is sent.') }),
              )
              .optional()
              .meta({ description: 'Events that will tell of the charge. Absent without any.' }),
          }),
        )
        .meta({ description: 'Earliest first.' }),
    }),
    examples: {
      'One left': {
        data: [{ date: 1_824_033_660_000, cycleNumber: 12, amount: 1_999, currency: 'USD' }],
      },
    },
  },
  refusals: ['resource_not_found'],
  handle: async (call, { db, now }) => {
    const { state, paymentMethod } = await subscriptionOf(db, call);
    const nowAt = state.testClockId === null ? now() : await businessNow(db, refOf(call), now());
    const expiresAt = paymentMethod && cardExpiresAt(paymentMethod);
    const rules = await loadNoticeRules(db, state.merchantId);
    const charges = upcomingCharges(state, call.query.limit, nowAt, rules, expiresAt);
    return ok({
      data: charges.map(({ at, fromAt, untilAt, cycleNumber, amountMinor, currency, notices }) => ({
        date: at,
        ...(fromAt === null || untilAt === null || at === untilAt
          ? {}
          : { chargeFrom: fromAt, chargeUntil: untilAt }),
        cycleNumber,
        amount: amountMinor,
        currency,
        ...(notices.length > 0 && {
          notices: notices.map(({ notice: eventType, dueAt: date }) => ({ eventType, date })),
        }),
      })),
    });
  },
});

type SubscriptionCall = Pick<Call<'/:subscriptionId'>, 'merchant' | 'params'>;

export function refOf({ merchant, params }: SubscriptionCall): SubscriptionRef {
  return { merchantId: merchant.id, subscriptionId: params.subscriptionId };
}

export async function subscriptionOf(db: Db, call: SubscriptionCall): Promise<SubscriptionView> {
  const { merchantId, subscriptionId } = refOf(call);
  return found(await findSubscription(db, merchantId, subscriptionId), 'subscription');
}
