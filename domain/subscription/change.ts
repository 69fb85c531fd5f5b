import type { EventDraft, IntentEventDraft, SubscriptionEventType } from '../events.ts';
import { LOG_ENTRIES_MAX, nextPaymentAt, remainingCycleCount } from './state.ts';
import type { LogEntry, SubscriptionState, SubscriptionStatus } from './state.ts';

/** A transition: the next state, what merchants hear of it, and what else changes with it. */
export interface Change {
  state: SubscriptionState;
  events: EventDraft[];
  effects: Effects;
}

/** Changes of other rows that belong to the same transaction. */
export interface Effects {
  /** An intent that will never be paid. */
  cancelledIntentId?: string;
  /** A method that is good from now on. */
  livePaymentMethodId?: string;
  /** The method it replaces. */
  deletedPaymentMethodId?: string;
  /** It ended unpaid: the link it came of, if any, may be used once more. Rule: D-37. */
  releasesLinkUse?: true;
}

type Patch = Partial<Omit<SubscriptionState, 'version' | 'log' | 'schemaVersion'>>;

/** `state` with `patch`, one version later, with its line of the log if it is worth one. */
export function next(
  state: SubscriptionState,
  patch: Patch,
  line: LogEntry | null,
): SubscriptionState {
  return {
    ...state,
    ...patch,
    version: state.version + 1,
    log: line ? [...state.log, line].slice(-LOG_ENTRIES_MAX) : state.log,
  };
}

const ENTRY_EVENTS: Record<SubscriptionStatus, SubscriptionEventType> = {
  CREATED: 'subscription.created',
  TRIALING: 'subscription.trialing',
  ACTIVE: 'subscription.active',
  UNPAID: 'subscription.unpaid',
  PAUSED: 'subscription.paused',
  ENDED: 'subscription.ended',
};

/** The event of entering a status, if `after` entered one. Rule: D-50. */
export function entryEvents(
  before: SubscriptionState | null,
  after: SubscriptionState,
  at: number,
): EventDraft[] {
  if (before?.status === after.status) return [];
  return [subscriptionEvent(ENTRY_EVENTS[after.status], after, at)];
}

export function subscriptionEvent(
  type: SubscriptionEventType,
  state: SubscriptionState,
  at: number,
  cycle?: { intentId: string; cycleNumber: number; amountMinor: number },
): EventDraft {
  return {
    type,
    at,
    status: state.status,
    amountMinor: cycle?.amountMinor ?? state.terms.amountMinor,
    currency: state.terms.currency,
    intentId: cycle?.intentId ?? null,
    cycleNumber: cycle?.cycleNumber ?? null,
    remainingCycleCount: remainingCycleCount(state),
    nextPaymentAt: nextPaymentAt(state),
    currentPeriodEndAt: state.currentPeriodEndAt,
    endReason: state.endReason,
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
