import type { IntervalUnit } from './calendar.ts';
import type { CustomerDetails } from './customer.ts';
import { declineMessage } from './declines.ts';
import type { DeactivationReason } from './delivery-schedule.ts';
import type { DisputeStatus } from './dispute.ts';
import type { IntentStatus, ShownIntentKind } from './payment-intent.ts';
import type { Actor } from './subscription/actor.ts';
import type { EndReason } from './subscription/end-reason.ts';
import type { SubscriptionStatus } from './subscription/status.ts';

export const INTENT_EVENT_TYPES = [
  'intent.checkout_opened',
  'intent.created',
  'intent.failed',
  'intent.refunded',
  'intent.success',
  'intent.refund_failed',
  'intent.disputed',
  'intent.fraud_warning',
] as const;

/** What a merchant is told of a charge before it comes. */
export const NOTICE_TYPES = [
  'subscription.renewal_upcoming',
  'subscription.trial_ending',
  'subscription.amount_changing',
  'payment_method.expiring',
] as const;
export type NoticeType = (typeof NOTICE_TYPES)[number];

export const SUBSCRIPTION_EVENT_TYPES = [
  'subscription.trialing',
  'subscription.cycle_charged',
  'subscription.created',
  'subscription.checkout_opened',
  'subscription.active',
  'subscription.unpaid',
  'subscription.retries_exhausted',
  'subscription.paused',
  'subscription.ended',
  'subscription.edited',
  'subscription.cancel_scheduled',
  'subscription.resumed',
  ...NOTICE_TYPES,
] as const;

export const ACCOUNT_EVENT_TYPES = ['account.charges_blocked', 'account.charges_resumed'] as const;

export const ENDPOINT_EVENT_TYPES = ['webhook.failing', 'webhook.deactivated'] as const;

export const DECLARATION_EVENT_TYPES = ['cancellation.received', 'withdrawal.received'] as const;

const SETUP_EVENT_TYPES = ['setup_method.success', 'setup_method.updated'] as const;

export const EVENT_TYPES = [
  ...INTENT_EVENT_TYPES,
  ...SUBSCRIPTION_EVENT_TYPES,
  ...SETUP_EVENT_TYPES,
  ...ACCOUNT_EVENT_TYPES,
  ...ENDPOINT_EVENT_TYPES,
  ...DECLARATION_EVENT_TYPES,
  'customer.portal_requested',
] as const;

export type IntentEventType = (typeof INTENT_EVENT_TYPES)[number];
export type SubscriptionEventType = (typeof SUBSCRIPTION_EVENT_TYPES)[number];
export type EventType = (typeof EVENT_TYPES)[number];

/** The numbered events of one subscription, payment, setup session, saved method, customer, account, endpoint or declaration. */
export interface StreamRef {
  merchantId: string;
  streamId: string;
}

/** An event without id and sequence number. The code that stores the event adds both. */
export type EventDraft = IntentEventDraft | SubscriptionEventDraft;

export interface IntentEventDraft {
  type: IntentEventType;
  /** Time of the event. For a subscription on a test clock: the clock's time. */
  at: number;
  intentId: string;
  status: IntentStatus;
  errorCode: string | null;
  /** Only for `intent.failed` of a cycle. Absent in the checkout, and if the subscription is cancelled or ENDED. */
  dunning?: { cycleNumber: number } & DunningFacts;
  /** Only for `intent.refunded` and `intent.refund_failed`: the refund and its amount. */
  refund?: { refundId: string; amountMinor: number };
  /** Only for `intent.fraud_warning`. */
  fraudType?: string;
  /** Only for `intent.disputed`: the dispute as it is after the event. */
  dispute?: {
    disputeId: string;
    amountMinor: number;
    currency: string;
    reason: string;
    status: DisputeStatus;
  };
}

export interface SubscriptionEventDraft {
  type: SubscriptionEventType;
  /** Time of the event. For a subscription on a test clock: the clock's time. */
  at: number;
  status: SubscriptionStatus;
  /** The recurring amount; for `cycle_charged` the charged amount. */
  amountMinor: number;
  currency: string;
  intentId: string | null;
  cycleNumber: number | null;
  remainingCycleCount: number;
  nextPaymentAt: number | null;
  currentPeriodEndAt: number | null;
  endReason: EndReason | null;
  actor: Actor;
  /** Only for `subscription.unpaid` and `subscription.retries_exhausted`, with the last decline's code. */
  dunning?: { errorCode: string | null } & DunningFacts;
  /** Only for a change that a command made without a change of the status. */
  changes?: ChangedTerms;
  /** Only for a notice: the charge that it tells of, and when the notice was due. */
  notice?: {
    chargeAt: number;
    amountMinor: number;
    dueAt: number;
    /** The charge is not made before: `chargeAt`, or later because the notice was late. */
    chargeFromAt: number;
    /** The page on which the payer cancels without login. The activity that stores the event adds it. */
    cancelUrl?: string;
  };
}

/** The new values of what a command changed. */
export interface ChangedTerms {
  amountMinor?: number;
  cycleCount?: number;
  every?: { interval: IntervalUnit; intervalCount: number };
  nextPaymentAt?: number;
  /** Null: a planned cancellation was withdrawn. */
  cancelAt?: number | null;
}

/** Facts about the retries of a declined cycle, in the events that report the decline. */
export interface DunningFacts {
  nextRetryAt: number | null;
  /** The URL where the payer replaces the payment method. The activity that stores the event adds it. */
  updatePaymentMethodLink?: string;
}

export function isIntentEvent(draft: EventDraft): draft is IntentEventDraft {
  return (INTENT_EVENT_TYPES as readonly string[]).includes(draft.type);
}

export interface EventEnvelope {
  eventId: string;
  /**
   * Counts from 1 in each stream. A stream has the events of one subscription, of one intent or setup session
   * without a subscription, or of the changes of one payment method.
   */
  sequence: number;
}

export interface IntentFacts {
  kind: ShownIntentKind;
  comments: string | null;
  amountMinor: number;
  currency: string;
  presentmentCurrency: string;
  receiptId: string | null;
  subscriptionId: string | null;
  customerDetails: CustomerDetails;
  metadata: Record<string, string> | null;
  card: EventCard | null;
}

export interface EventCard {
  brand: string;
  country: string | null;
  lastFourDigit: string;
  expiryMonth: number;
  expiryYear: number;
}

export interface SubscriptionFacts {
  subscriptionId: string;
  customerId: string;
  receiptId: string | null;
  metadata: Record<string, string> | null;
}

export function intentEventBody(
  draft: IntentEventDraft,
  envelope: EventEnvelope,
  facts: IntentFacts,
): Record<string, unknown> {
  const { errorCode } = draft;
  return {
    ...head(draft, envelope),
    intentId: draft.intentId,
    status: draft.status,
    amount: facts.amountMinor,
    currency: facts.currency,
    presentmentCurrency: facts.presentmentCurrency,
    receiptId: facts.receiptId,
    subscriptionId: facts.subscriptionId,
    kind: facts.kind,
    comments: facts.comments,
    paymentMethod: facts.card ? 'CARD' : null,
    card: facts.card,
    customerDetails: facts.customerDetails,
    errorCode,
    errorMessage: declineMessage(errorCode),
    ...draft.dunning,
    ...(draft.refund && {
      refundId: draft.refund.refundId,
      [draft.type === 'intent.refunded' ? 'refundedAmount' : 'failedAmount']:
        draft.refund.amountMinor,
    }),
    ...(draft.dispute && {
      disputeId: draft.dispute.disputeId,
      disputedAmount: draft.dispute.amountMinor,
      disputeCurrency: draft.dispute.currency,
      disputeReason: draft.dispute.reason,
      disputeStatus: draft.dispute.status,
    }),
    ...(draft.fraudType !== undefined && { fraudType: draft.fraudType }),
    metadata: facts.metadata ?? {},
  };
}

export interface SetupEventDraft {
  /** Real time: setup sessions have no test clock. */
  at: number;
  setupMethodId: string;
  paymentMethodId: string;
  customerId: string;
  metadata: Record<string, string> | null;
}

export function setupEventBody(
  draft: SetupEventDraft,
  envelope: EventEnvelope,
): Record<string, unknown> {
  return {
    ...head({ type: 'setup_method.success', at: draft.at }, envelope),
    setupMethodId: draft.setupMethodId,
    pmId: draft.paymentMethodId,
    customerId: draft.customerId,
    status: 'SUCCESS',
    metadata: draft.metadata ?? {},
  };
}

/** The event that the gateway changed the card of a saved payment method, or removed the method. */
export interface MethodEventDraft {
  /** Real time: payment methods have no test clock. */
  at: number;
  paymentMethodId: string;
  customerId: string;
  status: 'LIVE' | 'DELETED';
  card: EventCard;
}

export function methodEventBody(
  draft: MethodEventDraft,
  envelope: EventEnvelope,
): Record<string, unknown> {
  return {
    ...head({ type: 'setup_method.updated', at: draft.at }, envelope),
    pmId: draft.paymentMethodId,
    customerId: draft.customerId,
    status: draft.status,
    card: draft.card,
  };
}

/** The event that the gateway refuses the charges of the merchant's account, or takes them again. */
export interface AccountEventDraft {
  type: (typeof ACCOUNT_EVENT_TYPES)[number];
  /** Real time, as the other instant. */
  at: number;
  gateway: string;
  blockedSinceAt: number;
  /** The refusal of one of the charges; null if no charge is refused any more. */
  reason: string | null;
}

export function accountEventBody(
  { gateway, blockedSinceAt, reason, ...draft }: AccountEventDraft,
  envelope: EventEnvelope,
): Record<string, unknown> {
  return { ...head(draft, envelope), gateway, blockedSince: blockedSinceAt, reason };
}

/** The event that a webhook endpoint fails, or that it was deactivated. It is not sent to the endpoint itself. */
export interface EndpointEventDraft {
  type: (typeof ENDPOINT_EVENT_TYPES)[number];
  /** Real time, as the other instants. */
  at: number;
  configId: string;
  url: string;
  failingSinceAt: number | null;
  /** Only of `webhook.failing`. */
  deactivatesAt?: number;
  /** Only of `webhook.deactivated`. */
  reason?: DeactivationReason;
}

export function endpointEventBody(
  { configId, url, failingSinceAt, deactivatesAt, reason, ...draft }: EndpointEventDraft,
  envelope: EventEnvelope,
): Record<string, unknown> {
  return {
    ...head(draft, envelope),
    webhookConfigId: configId,
    webHookUrl: url,
    failingSince: failingSinceAt,
    ...(deactivatesAt !== undefined && { deactivatesAt }),
    ...(reason !== undefined && { deactivatedReason: reason }),
  };
}

/** `facts`: as merchants read them. */
export function plainEventBody(
  draft: { type: EventType; at: number },
  envelope: EventEnvelope,
  facts: Record<string, unknown>,
): Record<string, unknown> {
  return { ...head(draft, envelope), ...facts };
}

export function subscriptionEventBody(
  draft: SubscriptionEventDraft,
  envelope: EventEnvelope,
  facts: SubscriptionFacts,
): Record<string, unknown> {
  return {
    ...head(draft, envelope),
    subscriptionId: facts.subscriptionId,
    customerId: facts.customerId,
    status: draft.status,
    amount: draft.amountMinor,
    currency: draft.currency,
    intentId: draft.intentId,
    cycleNumber: draft.cycleNumber,
    remainingCycleCount: draft.remainingCycleCount,
    nextPaymentDate: draft.nextPaymentAt,
    currentPeriodEnd: draft.currentPeriodEndAt,
    ...(draft.endReason === null ? {} : { endReason: draft.endReason }),
    ...draft.dunning,
    ...(draft.changes && { changes: shownChanges(draft.changes) }),
    ...(draft.notice && shownNotice(draft.notice, draft)),
    actor: draft.actor,
    receiptId: facts.receiptId,
    metadata: facts.metadata ?? {},
  };
}

function shownNotice(
  {
    chargeAt,
    amountMinor,
    dueAt,
    chargeFromAt,
    cancelUrl,
  }: NonNullable<SubscriptionEventDraft['notice']>,
  { at, currency }: SubscriptionEventDraft,
) {
  const wait = chargeFromAt > chargeAt && { chargeFrom: chargeFromAt };
  const noticeOf = { date: chargeAt, ...wait, amount: amountMinor, currency };
  return {
    noticeOf,
    dueAt,
    lateMs: Math.max(0, at - dueAt),
    ...(cancelUrl !== undefined && { cancelUrl }),
  };
}

function shownChanges({ amountMinor, nextPaymentAt, every, ...rest }: ChangedTerms) {
  return {
    ...(amountMinor !== undefined && { amount: amountMinor }),
    ...rest,
    ...every,
    ...(nextPaymentAt !== undefined && { nextPaymentDate: nextPaymentAt }),
  };
}

function head(
  draft: { type: EventType; at: number },
  envelope: EventEnvelope,
): Record<string, unknown> {
  return {
    eventId: envelope.eventId,
    eventType: draft.type,
    eventTime: draft.at,
    sequence: envelope.sequence,
  };
}

/** Returns the drafts, with `link` added to each draft that has `dunning`. */
export function withUpdateLink(drafts: readonly EventDraft[], link: string): EventDraft[] {
  const add = <Facts extends DunningFacts>(dunning: Facts): Facts => ({
    ...dunning,
    updatePaymentMethodLink: link,
  });
  return drafts.map((draft) => {
    if (draft.dunning === undefined) return draft;
    return isIntentEvent(draft)
      ? { ...draft, dunning: add(draft.dunning) }
      : { ...draft, dunning: add(draft.dunning) };
  });
}

/** Returns the drafts, with `cancelUrl` added to each notice. */
export const withCancelUrl = (drafts: readonly EventDraft[], cancelUrl: string): EventDraft[] =>
  drafts.map((draft) =>
    'notice' in draft && draft.notice
      ? { ...draft, notice: { ...draft.notice, cancelUrl } }
      : draft,
  );
