import { LIST_NOTES, ListQueryFields } from '../../lists.ts';
import { nothing, page } from '../../openapi/answer-fields.ts';
import { bodyFields, extension, queryFields } from '../../openapi/operation.ts';
import type { Operation } from '../../openapi/operation.ts';
import {
  CreatedSubscription,
  exampleSubscription,
  ManualRetry,
  Subscription,
  SUBSCRIPTION_ID,
  Timeline,
  Upcoming,
} from './answers.ts';
import { EditSubscriptionShape } from './edit.ts';
import {
  CreateSubscriptionShape,
  SubscriptionIdBody,
  UnpauseSubscriptionBody,
  UPCOMING_LIMIT_DEFAULT,
  UpcomingQuery,
} from './schema.ts';

const subscriptionIdParam = { description: 'Id of a subscription.', example: SUBSCRIPTION_ID };
const idOnly = [{ summary: 'By id', value: { subscriptionId: SUBSCRIPTION_ID } }];
const done = { schema: nothing, examples: [{ summary: 'Done', value: {} }] };

/** Descriptions of the fields that subscriptions and links share. Rules: IF-4.3, IF-4.4. */
export const SUBSCRIPTION_NOTES = {
  amount: 'Amount of each cycle, in the smallest currency unit. More than 1 USD or its equivalent.',
  currency: 'Three-letter ISO 4217 code.',
  customerDetails: 'The payer. The page asks for a missing name or e-mail address.',
  interval: 'Unit of the time between two billings.',
  intervalCount:
    'Number of intervals between two billings: 3 with MONTH bills every three months. At most ' +
    '3650 DAY, 520 WEEK, 120 MONTH, 10 YEAR.',
  cycleCount: 'Total number of billing cycles, including the first. At most 1200.',
  receiptId: 'Your own order id.',
  description: 'What the subscription is for.',
  cancelUrl: 'Where the payer’s browser goes when the payer cancels. Default: `callbackUrl`.',
  upfrontAmount: 'Amount of the first cycle, instead of `amount`. Not allowed with a trial.',
  trialPeriodCount:
    'Number of trial periods before the first cycle. 0 means no trial. Not allowed with `upfrontAmount`.',
  trialPeriodInterval: 'Unit of the trial periods. Required with `trialPeriodCount`.',
  phoneNumberRequired: 'Whether the page asks for a telephone number. Default: false.',
  productPage: 'Name and description of the product on the page.',
  customerId: extension(
    'Id of an existing customer. Without it a customer is created from the details.',
  ),
};

const recordOperations: readonly Operation[] = [
  {
    operationId: 'createSubscription',
    method: 'post',
    path: '/subscription/create',
    tag: 'Subscriptions',
    summary: 'Create a subscription',
    description:
      'Send the payer to `fwdUrl`. The subscription becomes ACTIVE when the first payment succeeds. ' +
      'With a trial it becomes TRIALING when a payment method is saved. An event reports the change, ' +
      'and the payer’s browser returns to `callbackUrl`. The checkout stays open for 24 hours.',
    idempotencyKey: 'listed',
    body: bodyFields(
      CreateSubscriptionShape,
      {
        ...SUBSCRIPTION_NOTES,
        callbackUrl:
          'Where the payer’s browser goes afterwards, with `subscription_id` and `status` added. ' +
          'The parameters are unsigned and never prove a payment.',
        metadata: 'Your own key-value pairs.',
        testClockId: extension('Id of the test clock of the subscription. Test credentials only.'),
      },
      [
        {
          summary: 'Monthly for a year',
          value: {
            amount: 1_999,
            currency: 'USD',
            interval: 'MONTH',
            intervalCount: 1,
            cycleCount: 12,
            customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
            callbackUrl: 'https://merchant.example/thanks',
            description: 'Tea of the month',
            metadata: { plan: 'oolong' },
          },
        },
        {
          summary: 'Two weeks of trial, then every quarter',
          value: {
            amount: 4_900,
            currency: 'EUR',
            interval: 'MONTH',
            intervalCount: 3,
            cycleCount: 8,
            trialPeriodCount: 2,
            trialPeriodInterval: 'WEEK',
            customerDetails: { email: 'ada@example.com' },
            callbackUrl: 'https://merchant.example/thanks',
          },
        },
      ],
    ),
    answer: {
      description: 'The subscription was created, with status CREATED.',
      schema: CreatedSubscription,
      examples: [
        {
          summary: 'Created',
          value: {
            subscriptionId: SUBSCRIPTION_ID,
            createdAt: '2026-11-20T12:00:00.000Z',
            fwdUrl: 'https://pay.example/checkout/mYt0kEn',
          },
        },
      ],
    },
    refusals: ['resource_not_found'],
  },
  {
    operationId: 'getSubscription',
    method: 'get',
    path: '/subscription/get-subscription/:subscriptionId',
    tag: 'Subscriptions',
    summary: 'Read a subscription',
    description:
      'Do not poll: events report every change. One subscription can be read 10 times a second.',
    params: { subscriptionId: subscriptionIdParam },
    answer: {
      description: 'The subscription.',
      schema: Subscription,
      examples: [{ summary: 'ACTIVE', value: exampleSubscription }],
    },
    refusals: ['resource_not_found'],
  },
  {
    operationId: 'listSubscriptions',
    method: 'get',
    path: '/subscription',
    tag: 'Subscriptions',
    summary: 'List subscriptions',
    description: 'Newest first, in pages.',
    isExtension: true,
    query: queryFields(ListQueryFields, LIST_NOTES),
    answer: {
      description: 'A page of subscriptions.',
      schema: page(Subscription),
      examples: [
        { summary: 'The last page', value: { data: [exampleSubscription], metadata: {} } },
      ],
    },
  },
  {
    operationId: 'upcomingCharges',
    method: 'get',
    path: '/subscription/upcoming/:subscriptionId',
    tag: 'Subscriptions',
    summary: 'Read the next charges',
    description: 'The charges that follow if the subscription is not changed and no payment fails.',
    isExtension: true,
    params: { subscriptionId: subscriptionIdParam },
    query: queryFields(UpcomingQuery, {
      limit: `Maximum number of charges. Default: ${UPCOMING_LIMIT_DEFAULT}.`,
    }),
    answer: {
      description: 'The next charges. Empty in CREATED, PAUSED and ENDED.',
      schema: Upcoming,
      examples: [
        {
          summary: 'One left',
          value: {
            data: [{ date: 1_797_768_060_000, cycleNumber: 12, amount: 1_999, currency: 'USD' }],
          },
        },
      ],
    },
    refusals: ['resource_not_found'],
  },
  {
    operationId: 'subscriptionTimeline',
    method: 'get',
    path: '/subscription/timeline/:subscriptionId',
    tag: 'Subscriptions',
    summary: 'Read the timeline of a subscription',
    description:
      'The latest changes of the subscription with their times and reasons, in human-readable text.',
    isExtension: true,
    params: { subscriptionId: subscriptionIdParam },
    answer: {
      description: 'The timeline.',
      schema: Timeline,
      examples: [
        {
          summary: 'Just created',
          value: {
            data: [{ date: 1_795_176_000_000, what: 'created', why: 'the merchant asked for it' }],
          },
        },
      ],
    },
    refusals: ['resource_not_found'],
  },
];

const commandOperations: readonly Operation[] = [
  {
    operationId: 'editSubscription',
    method: 'post',
    path: '/subscription/edit',
    tag: 'Subscriptions',
    summary: 'Edit a subscription',
    description:
      'Allowed in TRIALING, ACTIVE, UNPAID and PAUSED. Takes effect at once. A payment that was already ' +
      'requested keeps its amount. To change the interval, send `interval`, `intervalCount` and ' +
      '`newNextPaymentDate` together.',
    idempotencyKey: 'listed',
    body: bodyFields(
      EditSubscriptionShape,
      {
        subscriptionId: 'Id of the subscription.',
        newAmount: 'Amount of each later cycle. More than 1 USD or its equivalent.',
        newCycleCount: 'Total number of billing cycles. Must exceed the number of charged cycles.',
        newNextPaymentDate:
          'Epoch milliseconds in the future. The next due date; later due dates are counted from it. In ' +
          'TRIALING: the end of the trial. In UNPAID: replaces the rest of the retry plan.',
        interval: 'Unit of the time between two billings.',
        intervalCount: 'Number of intervals between two billings.',
      },
      [
        {
          summary: 'Another amount',
          value: { subscriptionId: SUBSCRIPTION_ID, newAmount: 2_499 },
        },
        {
          summary: 'Yearly from a date on',
          value: {
            subscriptionId: SUBSCRIPTION_ID,
            interval: 'YEAR',
            intervalCount: 1,
            newNextPaymentDate: 1_798_761_600_000,
          },
        },
      ],
    ),
    answer: { description: 'The subscription was edited.', ...done },
    refusals: ['operation_not_allowed', 'resource_not_found', 'payment_outcome_pending'],
  },
  {
    operationId: 'cancelSubscription',
    method: 'post',
    path: '/subscription/merchant/cancel',
    tag: 'Subscriptions',
    summary: 'Cancel a subscription',
    description:
      'Allowed in every status except ENDED. The subscription ends at once, and no further attempt is ' +
      'made. The outcome of a charge that was already sent is still recorded, and its events are sent.',
    idempotencyKey: 'listed',
    body: bodyFields(SubscriptionIdBody, { subscriptionId: 'Id of the subscription.' }, idOnly),
    answer: { description: 'The subscription is ENDED.', ...done },
    refusals: ['operation_not_allowed', 'resource_not_found', 'payment_outcome_pending'],
  },
  {
    operationId: 'pauseSubscription',
    method: 'post',
    path: '/subscription/merchant/pause',
    tag: 'Subscriptions',
    summary: 'Pause a subscription',
    description:
      'Allowed in TRIALING, ACTIVE and UNPAID. Nothing is charged until the subscription is unpaused.',
    isExtension: true,
    idempotencyKey: 'honoured',
    body: bodyFields(SubscriptionIdBody, { subscriptionId: 'Id of the subscription.' }, idOnly),
    answer: { description: 'The subscription is PAUSED.', ...done },
    refusals: ['operation_not_allowed', 'resource_not_found', 'payment_outcome_pending'],
  },
  {
    operationId: 'unpauseSubscription',
    method: 'post',
    path: '/subscription/merchant/unpause',
    tag: 'Subscriptions',
    summary: 'Unpause a subscription',
    description:
      'Allowed in PAUSED. One charge is made at `newNextPaymentDate`: the owed cycle if there is one, ' +
      'else the next cycle. Later dates are counted from that date.',
    idempotencyKey: 'honoured',
    body: bodyFields(
      UnpauseSubscriptionBody,
      {
        subscriptionId: 'Id of the subscription.',
        newNextPaymentDate: 'Epoch milliseconds in the future.',
      },
      [
        {
          summary: 'Continue on a date',
          value: { subscriptionId: SUBSCRIPTION_ID, newNextPaymentDate: 1_798_761_600_000 },
        },
      ],
    ),
    answer: { description: 'The subscription is ACTIVE.', ...done },
    refusals: ['operation_not_allowed', 'resource_not_found', 'payment_outcome_pending'],
  },
  {
    operationId: 'retrySubscriptionPayment',
    method: 'post',
    path: '/subscription/manual-retry',
    tag: 'Subscriptions',
    summary: 'Retry a failed payment now',
    description:
      'Allowed in UNPAID, at most once in 4 hours. An earlier retry is answered `bad_request`, and the ' +
      'description names the earliest time of the next retry. A declined payment is answered 200 with ' +
      '`success: false`.',
    idempotencyKey: 'listed',
    body: bodyFields(SubscriptionIdBody, { subscriptionId: 'Id of the subscription.' }, idOnly),
    answer: {
      description: 'The payment was attempted.',
      schema: ManualRetry,
      examples: [
        {
          summary: 'Paid',
          value: {
            success: true,
            minManualRetryDate: '2026-11-20T16:00:00.000Z',
            status: 'ACTIVE',
            errorCode: null,
            errorMessage: null,
          },
        },
        {
          summary: 'Declined again',
          value: {
            success: false,
            minManualRetryDate: '2026-11-20T16:00:00.000Z',
            status: 'UNPAID',
            errorCode: 'card_declined',
            errorMessage: 'The card was declined.',
          },
        },
      ],
    },
    refusals: ['operation_not_allowed', 'resource_not_found', 'payment_outcome_pending'],
  },
];

export const subscriptionOperations = [...recordOperations, ...commandOperations];
