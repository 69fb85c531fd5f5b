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

/** What a request for a subscription and one for a link have in common. Rules: IF-4.3, IF-4.4. */
export const SUBSCRIPTION_NOTES = {
  amount:
    'What each cycle costs, in the smallest currency unit; more than 1 USD or its equivalent.',
  currency: 'ISO 4217 code of three letters.',
  customerDetails:
    'The payer. The page asks for a name and an e-mail address that are missing here.',
  interval: 'Unit of the time between two billings.',
  intervalCount:
    'How many of them: 3 with MONTH bills every three months. At most 3650 DAY, 520 WEEK, 120 MONTH, ' +
    '10 YEAR.',
  cycleCount: 'Billing cycles before the subscription ends, at most 1200; the first counts.',
  receiptId: 'Your own name for the order.',
  description: 'What it is for.',
  cancelUrl: 'Where a payer who cancels goes; default: `callbackUrl`.',
  upfrontAmount: 'Charged at the start instead of the first cycle’s amount. Not with a trial.',
  trialPeriodCount: 'Trial periods before the first cycle; 0 means none. Not with `upfrontAmount`.',
  trialPeriodInterval: 'Unit of the trial; required with `trialPeriodCount`.',
  phoneNumberRequired: 'Whether the page asks for a telephone number. Default: false.',
  productPage: 'What the page shows of the product.',
  customerId: extension('An existing customer; without one a customer is made from the details.'),
};

const lifeOperations: readonly Operation[] = [
  {
    operationId: 'createSubscription',
    method: 'post',
    path: '/subscription/create',
    tag: 'Subscriptions',
    summary: 'Create a subscription',
    description:
      'Send the payer to `fwdUrl`. Once the first payment succeeded the subscription is ACTIVE (with a ' +
      'trial: TRIALING, once a payment method is saved); an event tells you, and the payer comes back ' +
      'to `callbackUrl`. The checkout stays open for 24 hours.',
    idempotencyKey: 'listed',
    body: bodyFields(
      CreateSubscriptionShape,
      {
        ...SUBSCRIPTION_NOTES,
        callbackUrl:
          'Where the payer’s browser goes afterwards, with `subscription_id` and `status` added. ' +
          'Unsigned: never a proof of payment.',
        metadata: 'Your own pairs.',
        testClockId: extension('The test clock it lives by. Test credentials only.'),
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
      description: 'The subscription is there, in status CREATED.',
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
      'Do not poll: events tell you of every change. One subscription can be read 10 times a second.',
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
    description: 'From the newest to the oldest, page by page.',
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
    description: 'What will be charged, and when, if nothing changes and nothing fails.',
    isExtension: true,
    params: { subscriptionId: subscriptionIdParam },
    query: queryFields(UpcomingQuery, {
      limit: `How many at most. Default: ${UPCOMING_LIMIT_DEFAULT}.`,
    }),
    answer: {
      description: 'The next charges; none while CREATED or PAUSED and once ENDED.',
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
    summary: 'Read what happened, when and why',
    description: 'The latest steps of the subscription, for people.',
    isExtension: true,
    params: { subscriptionId: subscriptionIdParam },
    answer: {
      description: 'What happened.',
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
      'In TRIALING, ACTIVE, UNPAID and PAUSED, effective at once. A payment that was already requested ' +
      'keeps its amount. The interval changes only with `interval`, `intervalCount` and ' +
      '`newNextPaymentDate` together.',
    idempotencyKey: 'listed',
    body: bodyFields(
      EditSubscriptionShape,
      {
        subscriptionId: 'The subscription.',
        newAmount: 'What each later cycle costs; more than 1 USD or its equivalent.',
        newCycleCount: 'More than the cycles already charged.',
        newNextPaymentDate:
          'Epoch milliseconds in the future. The next due date, from which later ones are counted; in ' +
          'TRIALING the end of the trial; in UNPAID it replaces the rest of the retry plan.',
        interval: 'Unit of the time between two billings.',
        intervalCount: 'How many of them.',
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
    answer: { description: 'The subscription is edited.', ...done },
    refusals: ['operation_not_allowed', 'resource_not_found', 'payment_outcome_pending'],
  },
  {
    operationId: 'cancelSubscription',
    method: 'post',
    path: '/subscription/merchant/cancel',
    tag: 'Subscriptions',
    summary: 'Cancel a subscription',
    description:
      'In every status but ENDED, at once: no further attempt is made. The outcome of a charge already ' +
      'sent is still recorded, and its events are sent.',
    idempotencyKey: 'listed',
    body: bodyFields(SubscriptionIdBody, { subscriptionId: 'The subscription.' }, idOnly),
    answer: { description: 'The subscription is ENDED.', ...done },
    refusals: ['operation_not_allowed', 'resource_not_found', 'payment_outcome_pending'],
  },
  {
    operationId: 'pauseSubscription',
    method: 'post',
    path: '/subscription/merchant/pause',
    tag: 'Subscriptions',
    summary: 'Pause a subscription',
    description: 'In TRIALING, ACTIVE and UNPAID. Nothing is charged until it is unpaused.',
    isExtension: true,
    idempotencyKey: 'honoured',
    body: bodyFields(SubscriptionIdBody, { subscriptionId: 'The subscription.' }, idOnly),
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
      'Only when PAUSED. One charge is made at `newNextPaymentDate`, from which later dates are ' +
      'counted: the cycle that was owed, else the next.',
    idempotencyKey: 'honoured',
    body: bodyFields(
      UnpauseSubscriptionBody,
      {
        subscriptionId: 'The subscription.',
        newNextPaymentDate: 'Epoch milliseconds in the future.',
      },
      [
        {
          summary: 'Go on at a date',
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
      'Only when UNPAID, and at most once in 4 hours: within them `bad_request`, whose description ' +
      'names the instant to wait until. A payment that fails again is an answer like any other, with ' +
      '`success: false`.',
    idempotencyKey: 'listed',
    body: bodyFields(SubscriptionIdBody, { subscriptionId: 'The subscription.' }, idOnly),
    answer: {
      description: 'The payment was tried.',
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

export const subscriptionOperations = [...lifeOperations, ...commandOperations];
