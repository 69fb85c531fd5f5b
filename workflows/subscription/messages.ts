import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import type { SearchAttributePair } from '@temporalio/common';
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type {
  CancelCommand,
  CommandResult,
  CompleteCheckoutCommand,
  EditCommand,
  ManualRetryCommand,
  PauseCommand,
  ReplacePaymentMethodCommand,
  UnpauseCommand,
} from '../../domain/subscription/commands.ts';
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

/** What a caller sends: a command without its kind. An operator's signal may omit the id too. */
export type Input<C extends { kind: string; commandId: string }> = Omit<C, 'kind'>;
export type SignalInput<C extends { kind: string; commandId: string }> = Omit<
  C,
  'kind' | 'commandId'
>;

export const edit = defineUpdate<CommandResult, [Input<EditCommand>]>('edit');
export const cancel = defineUpdate<CommandResult, [Input<CancelCommand>]>('cancel');
export const pause = defineUpdate<CommandResult, [Input<PauseCommand>]>('pause');
export const unpause = defineUpdate<CommandResult, [Input<UnpauseCommand>]>('unpause');
export const manualRetry = defineUpdate<CommandResult, [Input<ManualRetryCommand>]>('manualRetry');
export const completeCheckout = defineUpdate<CommandResult, [Input<CompleteCheckoutCommand>]>(
  'completeCheckout',
);
export const replacePaymentMethod = defineUpdate<
  CommandResult,
  [Input<ReplacePaymentMethodCommand>]
>('replacePaymentMethod');

export const editSignal = defineSignal<[SignalInput<EditCommand>]>('edit');
export const cancelSignal = defineSignal('cancel');
export const pauseSignal = defineSignal('pause');
export const unpauseSignal = defineSignal<[SignalInput<UnpauseCommand>]>('unpause');
export const manualRetrySignal = defineSignal('manualRetry');

/** The test clock was sent to `targetAt`. Repeats and older targets change nothing. */
export const advanceClock = defineSignal<[{ targetAt: number }]>('advanceClock');
/** Look again at what is due: sent by a sweep that found something late. Changes nothing by itself. */
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
