import { invariant } from '../errors.ts';
import type {
  EventDraft,
  IntentEventDraft,
  SubscriptionEventDraft,
  SubscriptionEventType,
} from '../events.ts';
import type { AttemptTrigger } from '../payment-intent.ts';
import { askedForBy } from './actor.ts';
import type { Actor } from './actor.ts';
import type { Command } from './commands.ts';
import { LOG_ENTRIES_MAX, nextPaymentAt, remainingCycleCount } from './state.ts';
import type { LogEntry, OpenAttempt, SubscriptionState, SubscriptionStatus } from './state.ts';

/** A transition: the next state, its events for the merchant, and its changes of other rows. */
export interface Change {
  state: SubscriptionState;
  events: EventDraft[];
  effects: Effects;
}

/** Changes of other rows, which the database makes in the transaction that records the state. */
export interface Effects {
  cancelledIntentId?: string;
  livePaymentMethodId?: string;
  /** The payment method that `livePaymentMethodId` replaces. It stays LIVE while another subscription uses it. */
  deletedPaymentMethodId?: string;
  /** The subscription ended before its first payment, so the use of its link, if any, is released. */
  releasesLinkUse?: true;
}

type Patch = Partial<Omit<SubscriptionState, 'version' | 'log' | 'schemaVersion'>>;

/** Applies `patch`, raises the version by one, and adds `entry` to the log if it is not null. */
export function next(
  state: SubscriptionState,
  patch: Patch,
  entry: LogEntry | null,
): SubscriptionState {
  return {
    ...state,
    ...patch,
    version: state.version + 1,
    log: entry ? [...state.log, entry].slice(-LOG_ENTRIES_MAX) : state.log,
  };
}

/** Returns the change that makes `patch` and adds `entry` to the timeline. Its event is that of a new status, if any. */
export function changed(
  state: SubscriptionState,
  patch: Patch,
  entry: LogEntry,
  effects: Effects = {},
): Change {
  const after = next(state, patch, entry);
  return { state: after, events: entryEvents(state, after, entry.at), effects };
}

const ENTRY_EVENTS: Record<SubscriptionStatus, SubscriptionEventType> = {
  CREATED: 'subscription.created',
  TRIALING: 'subscription.trialing',
  ACTIVE: 'subscription.active',
  UNPAID: 'subscription.unpaid',
  PAUSED: 'subscription.paused',
  ENDED: 'subscription.ended',
};

export function entryEvents(
  before: SubscriptionState | null,
  after: SubscriptionState,
  at: number,
): EventDraft[] {
  if (before?.status === after.status) return [];
  return [subscriptionEvent(ENTRY_EVENTS[after.status], after, at)];
}

/** Returns an event of the change that made `state`, with the actor of the newest timeline entry. */
export function subscriptionEvent(
  type: SubscriptionEventType,
  state: SubscriptionState,
  at: number,
  cycle?: { intentId: string; cycleNumber: number; amountMinor: number },
): SubscriptionEventDraft {
  const entry = state.log.at(-1);
  invariant(entry !== undefined, 'the timeline begins with the creation');
  const { owed } = state;
  const isDunning = type === 'subscription.unpaid' || type === 'subscription.retries_exhausted';
  const unpaid = isDunning ? owed : null;
  return {
    type,
    at,
    status: state.status,
    amountMinor: cycle?.amountMinor ?? state.terms.amountMinor,
    currency: state.terms.currency,
    intentId: (cycle ?? unpaid)?.intentId ?? null,
    cycleNumber: (cycle ?? unpaid)?.cycleNumber ?? null,
    remainingCycleCount: remainingCycleCount(state),
    nextPaymentAt: nextPaymentAt(state),
    currentPeriodEndAt: state.currentPeriodEndAt,
    endReason: state.endReason,
    actor: entry.actor,
    ...(unpaid && {
      dunning: { errorCode: unpaid.lastDeclineCode, nextRetryAt: unpaid.nextRetryAt },
    }),
  };
}

export function intentEvent(
  type: IntentEventDraft['type'],
  intentId: string,
  at: number,
  status: IntentEventDraft['status'],
  errorCode: string | null = null,
): IntentEventDraft {
  return { type, at, intentId, status, errorCode };
}

export type Cause = Required<Pick<LogEntry, 'why' | 'actor'>>;

/** Returns why a command was sent, for the timeline. A command without an actor counts as the merchant's. */
export function orderOf({ actor = 'merchant' }: Command): Cause {
  return { why: askedForBy(actor), actor };
}

/** Returns why an attempt was made, voided or settled, for the timeline. Manual review is the operator's. */
export function causeOf(
  attempt: OpenAttempt,
  { byPerson, isWithdrawn }: { byPerson?: true; isWithdrawn?: true },
): Cause {
  const isOperators = attempt.actor === 'operator';
  const causes: Record<AttemptTrigger, [why: string, actor: Actor]> = {
    checkout: ['the payer paid in the checkout', 'payer'],
    scheduled: ['its date had come', 'schedule'],
    automatic_retry: ['the retry plan said so', 'retry_plan'],
    manual_retry: isOperators
      ? ['an operator asked for a retry', 'operator']
      : ['the merchant asked for a retry', 'merchant'],
    new_method: ['the payer gave another method', 'payer'],
    authentication: ['the bank asked the payer to confirm it', 'payer'],
    one_time: ['the merchant asked for a one-time charge', 'merchant'],
    tokenised: ['the merchant charged a saved method', 'merchant'],
  };
  const [reason, actor] = causes[attempt.trigger];
  const why = `${reason} (attempt ${attempt.attemptNumber})`;
  if (isWithdrawn) return { why: `${why}; it was voided before the gateway received it`, actor };
  return byPerson ? { why: `${why}; a person settled it`, actor: 'operator' } : { why, actor };
}
