import type {
  EventDraft,
  IntentEventDraft,
  SubscriptionEventDraft,
  SubscriptionEventType,
} from '../events.ts';
import type { Actor, Orderer } from './actor.ts';
import type { Command } from './commands.ts';
import { actorOf } from './entries.ts';
import type { EntryDraft, OfAttempt } from './entries.ts';
import { nextPaymentAt, remainingCycleCount } from './state.ts';
import type { OpenAttempt, OwedCycle, SubscriptionState } from './state.ts';
import type { SubscriptionStatus } from './status.ts';

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

type Patch = Partial<Omit<SubscriptionState, 'version' | 'latest' | 'schemaVersion'>>;

/** Applies `patch` and raises the version by one, with `entry` as the latest entry of the ledger if it is not null. */
export function next(
  state: SubscriptionState,
  patch: Patch,
  entry: EntryDraft | null,
): SubscriptionState {
  const version = state.version + 1;
  const latest = entry ? { version, ...entry } : state.latest;
  return { ...state, ...patch, version, latest };
}

/** Returns the change that makes `patch`, with its entry. Its event is that of a new status, if any. */
export function changed(
  state: SubscriptionState,
  patch: Patch,
  entry: EntryDraft,
  effects: Effects = {},
): Change {
  const after = next(state, patch, entry);
  return { state: after, events: entryEvents(state, after, entry.at), effects };
}

/** Returns the change that creates a subscription. */
export function created(state: SubscriptionState): Change {
  return { state, events: entryEvents(null, state, state.createdAt), effects: {} };
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

/** Returns an event of the change that made `state`, with the actor of the latest entry. */
export function subscriptionEvent(
  type: SubscriptionEventType,
  state: SubscriptionState,
  at: number,
  cycle?: { intentId: string; cycleNumber: number; amountMinor: number },
): SubscriptionEventDraft {
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
    actor: state.latest.actor,
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

/** Returns who sent a command, and its id, for the ledger. A command without an actor counts as the merchant's. */
export function ordered({ commandId, actor = 'merchant' }: Command): Ordered {
  return { commandId, actor };
}

interface Ordered {
  commandId: string;
  actor: Orderer;
}

/** Returns the attempt of an entry, with the actor. */
export function ofAttempt(
  { cycleNumber, intentId }: OwedCycle,
  { attemptNumber, trigger, actor: orderedBy, cause }: OpenAttempt,
  byPerson?: true,
): OfAttempt & { actor: Actor } {
  const attempt = {
    cycleNumber,
    intentId,
    attemptNumber,
    trigger,
    ...(orderedBy && { orderedBy }),
    ...(cause.rule === 'set_date' && { dateSetBy: cause.setBy.actor }),
    ...(byPerson && { byPerson }),
  };
  return { ...attempt, actor: actorOf(attempt) };
}
