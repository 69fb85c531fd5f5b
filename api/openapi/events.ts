import { interval } from '../routes/subscriptions/create.ts';
import { z } from 'zod';
import {
  ACCOUNT_EVENT_TYPES,
  DECLARATION_EVENT_TYPES,
  ENDPOINT_EVENT_TYPES,
  EVENT_TYPES,
  INTENT_EVENT_TYPES,
  SUBSCRIPTION_EVENT_TYPES,
} from '../../domain/events.ts';
import type { EventType } from '../../domain/events.ts';
import { DEACTIVATION_REASONS } from '../../domain/delivery-schedule.ts';
import { customerDetails } from '../fields.ts';
import {
  actor,
  added,
  count,
  currencyCode,
  declineCode,
  declarationFields,
  declineMessage,
  disputeStatus,
  endReason,
  epochMs,
  EXTENSION,
  id,
  intentComments,
  intentKind,
  intentStatus,
  minorAmount,
  pairs,
  paymentMethodKind,
  subscriptionStatus,
  url,
} from '../answer-fields.ts';
import type { TAGS } from '../http/route.ts';
import type { JsonSchema, SchemaBook } from './json-schema.ts';

// One body of each event type. `test/integration/event-examples.test.ts` compares these bodies with received ones.
import EXAMPLES from './event-examples.json' with { type: 'json' };

/** For each type of event, the occasion on which an event is sent. */
const EVENTS: Readonly<Record<EventType, string>> = {
  'intent.checkout_opened': 'The page of a payment intent was opened for the first time.',
  'intent.created': 'A payment intent was created.',
  'intent.failed': 'An attempt to charge was declined.',
  'intent.refunded': 'The payment was refunded, fully or partly.',
  'intent.success': 'The payment intent was paid.',
  'intent.refund_failed':
    'A refund that the gateway had accepted did not reach the payer. Its amount can be refunded again.',
  'intent.disputed':
    'The payer disputed the payment, or the status of the dispute changed. The status of the intent stays.',
  'intent.fraud_warning':
    'The card network expects that the payer reports the payment as fraud. A refund may prevent the dispute. The status ' +
    'of the intent stays.',
  'subscription.trialing': 'The trial began.',
  'subscription.cycle_charged':
    'A cycle was paid. This includes the first cycle and retried cycles.',
  'subscription.created': 'A subscription was created.',
  'subscription.checkout_opened':
    'The checkout of a subscription with a trial was opened for the first time.',
  'subscription.active': 'The subscription became ACTIVE.',
  'subscription.unpaid': 'The subscription became UNPAID.',
  'subscription.retries_exhausted': 'The subscription is UNPAID and no automatic retry is left.',
  'subscription.paused': 'The subscription became PAUSED.',
  'subscription.ended': 'The subscription became ENDED.',
  'subscription.edited': 'An edit changed the terms or the next date.',
  'subscription.cancel_scheduled': 'The subscription will end at the end of its paid period.',
  'subscription.resumed': 'A planned end of the subscription was withdrawn.',
  'subscription.renewal_upcoming':
    'A renewal is to come. Your settings say for which cycles, and when.',
  'subscription.trial_ending': 'A trial ends, and its first charge is to come.',
  'subscription.amount_changing': 'A charge is to come whose amount an edit has raised.',
  'payment_method.expiring':
    'A charge is to come before which the card of the subscription expires.',
  'setup_method.success': 'A payment method was saved in a setup session.',
  'account.charges_blocked':
    'The payment gateway refuses every charge of your account. Due charges wait, and no payer is declined.',
  'account.charges_resumed': 'The payment gateway takes the charges of your account again.',
  'webhook.failing':
    'One of your endpoints has failed for half of the five days after which it is deactivated, or for nine tenths. Sent to ' +
    'your other endpoints.',
  'webhook.deactivated':
    'One of your endpoints was deactivated: nothing is sent to it until you update it. Sent to your other endpoints.',
  'cancellation.received':
    'A payer declared a cancellation on your page without login. Its `outcome` says whether the subscription ends.',
  'withdrawal.received':
    'A payer declared a withdrawal on your page without login. Nothing was refunded: `refunds` has what was paid.',
  'customer.portal_requested':
    'A payer asked, on your page, for a link to their own page by e-mail. Without the endpoint `mailto:payer`, make one by ' +
    '`POST /customer/portal` and send it to the address that you have of this customer.',
  'setup_method.updated':
    'The card network changed the card of a saved payment method, or the gateway removed the payment method.',
};

/** The event types of interface 1.0.0. The other types are extensions. */
const LISTED: ReadonlySet<EventType> = new Set([
  ...INTENT_EVENT_TYPES.filter(
    (type) =>
      type !== 'intent.refund_failed' &&
      type !== 'intent.disputed' &&
      type !== 'intent.fraud_warning',
  ),
  'subscription.trialing',
  'subscription.cycle_charged',
]);

const head = {
  eventId: id('evt', 'event; also the header `webhook-id`'),
  eventTime: epochMs(
    'Time of the event. For a subscription on a test clock: the time of the clock.',
  ),
  sequence: z
    .int()
    .min(1)
    .meta({
      description:
        'Number of the event, from 1, counted over all event types of one subscription. An intent or a setup ' +
        'session without a subscription has a count of its own, and so have the changes of a payment method, a customer, an ' +
        'account at a gateway, an endpoint and a declaration that names no contract.',
    }),
};

const updateLink = added(
  url(
    'Page where the payer replaces the payment method. After the errorCode authentication_required, the payer can ' +
      'also confirm the payment with the bank there, and so pay it with the same card. The link works for 30 days. ' +
      'Only in events about a declined cycle, while the subscription is TRIALING, ACTIVE or UNPAID.',
  ),
);

const eventCard = z
  .object({
    brand: z.string(),
    country: z.string().nullable(),
    lastFourDigit: z.string(),
    expiryMonth: z.int(),
    expiryYear: z.int(),
  })
  .meta({ id: 'EventCard' });

const IntentEvent = z.object({
  ...head,
  eventType: z.enum(INTENT_EVENT_TYPES),
  intentId: id('in', 'payment intent'),
  status: intentStatus,
  amount: minorAmount('Amount owed.'),
  currency: currencyCode,
  presentmentCurrency: currencyCode,
  receiptId: z.string().nullable(),
  subscriptionId: id('sub', 'subscription').nullable(),
  kind: intentKind.meta(EXTENSION),
  comments: intentComments.nullable().meta(EXTENSION),
  paymentMethod: paymentMethodKind.nullable(),
  card: eventCard.nullable(),
  customerDetails,
  errorCode: declineCode.nullable(),
  errorMessage: declineMessage.nullable(),
  cycleNumber: added(
    count('Number of the declined cycle. Only in intent.failed of a cycle after the checkout.'),
  ),
  nextRetryAt: added(
    epochMs(
      'Time of the next automatic retry; null without one. Only in intent.failed of a cycle after the checkout.',
    ).nullable(),
  ),
  updatePaymentMethodLink: updateLink,
  refundId: added(id('rf', 'refund'), 'Only in intent.refunded and intent.refund_failed.'),
  refundedAmount: added(minorAmount('Amount of this refund. Only in intent.refunded.')),
  failedAmount: added(minorAmount('Amount of the failed refund. Only in intent.refund_failed.')),
  disputeId: added(id('dp', 'dispute'), 'Only in intent.disputed, like the following fields.'),
  disputedAmount: added(minorAmount('Disputed amount, which may differ from the paid amount.')),
  disputeCurrency: added(currencyCode),
  disputeReason: added(z.string(), 'Reason of the payer’s bank, as the gateway names it.'),
  disputeStatus: added(disputeStatus),
  fraudType: added(z.string(), 'As the network names it. Only in intent.fraud_warning.'),
  metadata: pairs,
});

const SubscriptionEvent = z.object({
  ...head,
  eventType: z.enum(SUBSCRIPTION_EVENT_TYPES),
  subscriptionId: id('sub', 'subscription'),
  customerId: id('cus', 'customer').meta(EXTENSION),
  status: subscriptionStatus,
  amount: minorAmount(
    'Amount of a cycle. In subscription.cycle_charged: the amount that was charged.',
  ),
  currency: currencyCode,
  intentId: id('in', 'payment intent of the cycle').nullable(),
  cycleNumber: count('Number of the cycle, from 1.').nullable(),
  remainingCycleCount: count('Number of cycles that are not paid yet.'),
  nextPaymentDate: epochMs('As in the answer of getSubscription.').nullable().meta(EXTENSION),
  currentPeriodEnd: epochMs('As in the answer of getSubscription.').nullable().meta(EXTENSION),
  endReason: added(endReason, 'Only when ENDED.'),
  actor: added(
    actor,
    'Cause of the change. `operator`: an operator of the service. `schedule`: a due date was reached. ' +
      '`retry_plan`: an automatic retry on a date of the plan.',
  ),
  errorCode: added(
    declineCode.nullable(),
    'Why the cycle was declined. Only in subscription.unpaid and subscription.retries_exhausted.',
  ),
  nextRetryAt: added(
    epochMs(
      'Time of the next automatic retry; null without one. Only in subscription.unpaid and ' +
        'subscription.retries_exhausted.',
    ).nullable(),
  ),
  changes: added(
    z.object({
      amount: minorAmount('New amount of each cycle.').optional(),
      cycleCount: count('New total number of cycles.').optional(),
      interval: interval.optional(),
      intervalCount: count('New number of intervals between two billings.').optional(),
      nextPaymentDate: epochMs('New next date.').optional(),
      cancelAt: epochMs('When the subscription ends; null if it no longer ends.')
        .nullable()
        .optional(),
    }),
    'What was changed. Only in subscription.edited, subscription.cancel_scheduled and subscription.resumed.',
  ),
  noticeOf: added(
    z.object({
      date: epochMs('When the charge is due.'),
      chargeFrom: epochMs('The charge is not made before, because the notice is late.').optional(),
      amount: minorAmount('Amount of the charge.'),
      currency: currencyCode,
    }),
    'The charge that is to come. Only in subscription.renewal_upcoming, subscription.trial_ending, ' +
      'subscription.amount_changing and payment_method.expiring, like the following three fields.',
  ),
  dueAt: added(epochMs('When this notice was due.')),
  lateMs: added(
    count('How much later it was given, in ms: more than some seconds after an outage.'),
  ),
  cancelUrl: added(url('Page on which the payer cancels without login, for example in your mail.')),
  updatePaymentMethodLink: updateLink,
  receiptId: z
    .string()
    .nullable()
    .meta({ description: 'Your own order id.', ...EXTENSION }),
  metadata: pairs,
});

const SetupMethodEvent = z.object({
  ...head,
  eventType: z.literal('setup_method.success'),
  setupMethodId: id('sm', 'setup session'),
  pmId: id('pmt', 'saved payment method'),
  customerId: id('cus', 'customer'),
  status: z.literal('SUCCESS'),
  metadata: pairs.meta(EXTENSION),
});

const MethodUpdatedEvent = z.object({
  ...head,
  eventType: z.literal('setup_method.updated'),
  pmId: id('pmt', 'saved payment method'),
  customerId: id('cus', 'customer'),
  status: z.enum(['LIVE', 'DELETED']).meta({
    description:
      'DELETED: the gateway removed the payment method, and it cannot be charged any more.',
  }),
  card: eventCard.meta({ description: 'The present card.' }),
});

const AccountEvent = z.object({
  ...head,
  eventType: z.enum(ACCOUNT_EVENT_TYPES),
  gateway: z.string().meta({ description: 'The account at the gateway, such as `stripe`.' }),
  blockedSince: epochMs('When the first charge was refused.'),
  reason: z
    .string()
    .nullable()
    .meta({ description: 'Answer of the gateway. Null in account.charges_resumed.' }),
});

const EndpointEvent = z.object({
  ...head,
  eventType: z.enum(ENDPOINT_EVENT_TYPES),
  webhookConfigId: id('whc', 'configuration'),
  webHookUrl: url('URL that events are sent to.'),
  failingSince: epochMs('First failure since the last success.').nullable(),
  deactivatesAt: added(
    epochMs('When it will be deactivated, if it goes on failing. Only in webhook.failing.'),
  ),
  deactivatedReason: added(
    z.enum(DEACTIVATION_REASONS),
    '`endpoint_gone`: it answered 410. Only in webhook.deactivated.',
  ),
});

const DeclarationEvent = z.object({
  ...head,
  eventType: z.enum(DECLARATION_EVENT_TYPES),
  ...declarationFields,
});

const CustomerEvent = z.object({
  ...head,
  eventType: z.literal('customer.portal_requested'),
  customerId: id('cus', 'customer'),
  portalId: id('prt', 'link'),
  expiresAt: epochMs('When the link of the e-mail stops working.'),
  language: declarationFields.language,
});

const DECLARATION = DeclarationEvent.meta({ id: 'DeclarationEvent', ...EXTENSION });

const SUBSCRIPTION_EVENT = SubscriptionEvent.meta({ id: 'SubscriptionEvent' });
const EVENT_BODIES = {
  cancellation: DECLARATION,
  withdrawal: DECLARATION,
  customer: CustomerEvent.meta({ id: 'CustomerEvent', ...EXTENSION }),
  account: AccountEvent.meta({ id: 'AccountEvent', ...EXTENSION }),
  webhook: EndpointEvent.meta({ id: 'EndpointEvent', ...EXTENSION }),
  intent: IntentEvent.meta({ id: 'IntentEvent' }),
  subscription: SUBSCRIPTION_EVENT,
  payment_method: SUBSCRIPTION_EVENT,
  setup_method: SetupMethodEvent.meta({ id: 'SetupMethodEvent', ...EXTENSION }),
};
const METHOD_UPDATED = MethodUpdatedEvent.meta({ id: 'MethodUpdatedEvent', ...EXTENSION });

const SIGNATURE_HEADERS = {
  'webhook-id': 'The `eventId`. The same on every delivery attempt.',
  'webhook-timestamp': 'Real time of this delivery attempt, in seconds since 1970.',
  'webhook-signature':
    'Standard Webhooks: a list of signatures, separated by spaces. Each is `v1,` + ' +
    'Base64(HMAC-SHA256(`webhook-id.webhook-timestamp.body`)). One of them must match.',
  'xpay-signature': 'Base64(HMAC-SHA512(body)).',
};

/** Without `Event` in a callback some generators leave out the events, because they look for schemas only in paths. */
export const EVENT_CALLBACK: JsonSchema = {
  '{$request.body#/endpoint}': {
    post: receipt('onEvent', 'Receive an event of any type.', {
      schema: { $ref: '#/components/schemas/Event' },
      examples: { 'A paid cycle': { value: EXAMPLES['subscription.cycle_charged'] } },
    }),
  },
};

export function eventSchema(book: SchemaBook): JsonSchema {
  const mapping = Object.fromEntries(
    EVENT_TYPES.map((type) => [type, bodyOf(book, type)['$ref'] as string]),
  );
  return {
    oneOf: [...new Set(Object.values(mapping))].map(($ref) => ({ $ref })),
    discriminator: { propertyName: 'eventType', mapping },
  };
}

function bodyOf(book: SchemaBook, type: EventType): JsonSchema {
  const kind = type.split('.')[0] as keyof typeof EVENT_BODIES;
  return book.of(type === 'setup_method.updated' ? METHOD_UPDATED : EVENT_BODIES[kind]);
}

export function webhooksOf(book: SchemaBook): Record<string, JsonSchema> {
  return Object.fromEntries(EVENT_TYPES.map((type) => [type, { post: webhook(book, type) }]));
}

function webhook(book: SchemaBook, type: EventType): JsonSchema {
  return {
    ...receipt(operationIdOf(type), EVENTS[type], {
      schema: bodyOf(book, type),
      examples: { [type]: { value: EXAMPLES[type] } },
    }),
    ...(LISTED.has(type) ? {} : EXTENSION),
  };
}

/** For example `onSubscriptionCycleCharged`: a generator makes the name of a function of it. */
function operationIdOf(type: EventType): string {
  return `on_${type}`.replaceAll(/[._](\w)/g, (_, letter: string) => letter.toUpperCase());
}

function receipt(operationId: string, summary: string, content: JsonSchema): JsonSchema {
  return {
    operationId,
    summary,
    tags: ['Webhook events' satisfies keyof typeof TAGS],
    security: [],
    parameters: Object.entries(SIGNATURE_HEADERS).map(([name, description]) => ({
      name,
      in: 'header',
      required: true,
      description,
      schema: { type: 'string' },
    })),
    requestBody: { required: true, content: { 'application/json': content } },
    responses: {
      '2XX': { description: 'Received. After any status but 2XX and 410 the event is sent again.' },
      '410': {
        description: 'The endpoint accepts no more events. The configuration is deactivated.',
      },
    },
  };
}
