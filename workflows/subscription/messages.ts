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
  /** What the clock shows this subscription. */
  nowAt: number;
  /** Where the clock was sent. */
  targetAt: number;
  /** The last target that was recorded as reached. */
  reachedAt: number;
}

/** One run's argument, handed on by continue-as-new and rebuilt from the row by a restart. */
export interface SubscriptionInput {
  state: SubscriptionState;
  /** The subscription's place on its test clock; null in real time. */
  clock: ClockPosition | null;
  /** Events may be waiting that no run has tried to deliver yet. */
  deliver: boolean;
  /** The row may be further than `state`. */
  isInDoubt: boolean;
  /**
   * Steps run inside the workflow task first, and the run goes on after a renewal. Absent in runs that
   * began before this existed: they replay as they were recorded, and their successors have it.
   */
  isLocalFirst?: true;
  /**
   * The run writes no search attribute after a renewal, and leaves the checkout queue within 30 s. Absent
   * in runs that began before: they write after every renewal and leave at a quiet moment, as recorded.
   */
  shape?: 2;
  /** An earlier run moved to the billing queue. It happens once, even if this run is on `checkout` again. */
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
