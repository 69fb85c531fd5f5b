import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import type { SearchAttributePair } from '@temporalio/common';
import { defineQuery, defineSignal } from '@temporalio/workflow';
import type { LogEntry, SubscriptionState } from '../../domain/subscription/state.ts';
import type { UpcomingCharge } from '../../domain/subscription/upcoming.ts';

/** The registered type of the workflow; never changes. */
export const SUBSCRIPTION_WORKFLOW = 'subscription';

export function subscriptionWorkflowId(subscriptionId: string): string {
  return `subscription/${subscriptionId}`;
}

export interface ClockPosition {
  /** The subscription's own time. */
  nowAt: number;
  /** The instant up to which the clock may move. */
  targetAt: number;
  /** The last target that was recorded as reached. */
  reachedAt: number;
}

/** Argument of a run. Continue-as-new passes it on; a start from the row builds it again. */
export interface SubscriptionInput {
  state: SubscriptionState;
  /** Null for a subscription without a test clock. */
  clock: ClockPosition | null;
  /** The outbox may hold events from before the run. */
  deliver: boolean;
  /** The row may hold a later state than `state`. */
  isInDoubt: boolean;
  /**
   * Steps first run inside the workflow task, and the run continues after a renewal. Absent in older runs:
   * they replay as recorded, and their successors have the field.
   */
  isLocalFirst?: true;
  /**
   * The run writes no search attribute after a renewal, and leaves the checkout queue within 30 s. Absent
   * in older runs: they write after every renewal and leave the queue hours later, as recorded.
   */
  shape?: 2;
  /** An earlier run moved to the billing queue. A subscription moves once. */
  hasLeftCheckout?: true;
}

/** The test clock was sent to `targetAt`. Repeats and older targets change nothing. */
export const advanceClock = defineSignal<[{ targetAt: number }]>('advanceClock');
/** Sent by a sweep that takes the subscription for late: the run looks again. Changes nothing by itself. */
export const poke = defineSignal('poke');

export const stateQuery = defineQuery<SubscriptionState>('state');
export const upcomingQuery = defineQuery<UpcomingCharge[], [{ limit: number }?]>('upcoming');
export const timelineQuery = defineQuery<LogEntry[]>('timeline');

const searchAttributes = {
  merchantId: defineSearchAttributeKey('MerchantId', SearchAttributeType.KEYWORD),
  subscriptionStatus: defineSearchAttributeKey('SubscriptionStatus', SearchAttributeType.KEYWORD),
  lastOutcome: defineSearchAttributeKey('LastOutcome', SearchAttributeType.KEYWORD),
};

/**
 * What operators filter subscriptions by. No personal data: these are stored in the clear. Nothing
 * that every renewal changes: to write one attribute costs the server as much as the rest of a renewal.
 */
export function attributesOf(state: SubscriptionState): SearchAttributePair[] {
  return [
    { key: searchAttributes.merchantId, value: state.merchantId },
    { key: searchAttributes.subscriptionStatus, value: state.status },
    { key: searchAttributes.lastOutcome, value: lastOutcome(state) },
  ];
}

function lastOutcome(state: SubscriptionState): string {
  if (state.openAttempt?.reviewReason !== undefined) return 'review';
  if (state.openAttempt && state.openAttempt.lookups > 0) return 'unknown';
  if (state.owed?.lastDeclineCode) return state.owed.lastDeclineCode;
  return state.cyclesCharged > 0 ? 'paid' : 'none';
}
