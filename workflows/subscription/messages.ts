import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import type { SearchAttributePair, TypedSearchAttributes } from '@temporalio/common';
import { defineQuery, defineSignal } from '@temporalio/workflow';
import type { WorkflowInfo } from '@temporalio/workflow';
import type { Entry } from '../../domain/subscription/entries.ts';
import type { EndReason } from '../../domain/subscription/end-reason.ts';
import type { Snapshot } from '../../domain/subscription/snapshot.ts';
import type { SubscriptionRef, SubscriptionState } from '../../domain/subscription/state.ts';

/** The registered type of the workflow; never changes. */
export const SUBSCRIPTION_WORKFLOW = 'subscription';

const ID_PREFIX = 'subscription/';

export function subscriptionWorkflowId(subscriptionId: string): string {
  return `${ID_PREFIX}${subscriptionId}`;
}

/** The argument of a run, from the previous run (continue-as-new) or built from the row. */
export interface SubscriptionInput extends Pick<Snapshot, 'state' | 'entries' | 'clock'> {
  /** True if an endpoint waits for events from before the run. */
  deliver: boolean;
  /** True if the row may hold a later state than `state`. Then the run first reads the row. */
  needsResync: boolean;
  /** True if an open attempt is looked up after that read. Absent: false. */
  isRecheckWanted?: boolean;
}

/** Sets the test clock's target. A repeat or an earlier target changes nothing. */
export const advanceClock = defineSignal<[{ targetAt: number }]>('advanceClock');
/**
 * Makes the run read its row again and look up an unknown outcome now. Sent by the sweep, by operators, and after a
 * review, a gateway event or a payer's return.
 */
export const recheck = defineSignal('recheck');

/** A run's state, and the latest entries of the ledger that it knows. */
export interface KnownState extends SubscriptionState {
  entries: Entry[];
}

export const stateQuery = defineQuery<KnownState>('state');

const searchAttributes = {
  merchantId: defineSearchAttributeKey('MerchantId', SearchAttributeType.KEYWORD),
  subscriptionStatus: defineSearchAttributeKey('SubscriptionStatus', SearchAttributeType.KEYWORD),
  lastOutcome: defineSearchAttributeKey('LastOutcome', SearchAttributeType.KEYWORD),
};

/** The merchant's own id of the order. Set at the start and never changed; absent without a `receiptId`. */
const RECEIPT_ID = defineSearchAttributeKey('ReceiptId', SearchAttributeType.KEYWORD);

export function fixedAttributesOf(receiptId: string | null): SearchAttributePair[] {
  return receiptId === null ? [] : [{ key: RECEIPT_ID, value: receiptId }];
}

/** Returns the subscription of a listed run; null without the attribute of its merchant. */
export function listedSubscription(
  workflowId: string,
  attributes: TypedSearchAttributes,
): SubscriptionRef | null {
  const merchantId = attributes.get(searchAttributes.merchantId);
  return merchantId === undefined
    ? null
    : { merchantId, subscriptionId: workflowId.slice(ID_PREFIX.length) };
}

export function receiptIdIn(attributes: TypedSearchAttributes): string | null {
  return attributes.get(RECEIPT_ID) ?? null;
}

/** Returns the memo. It repeats the product's name, because Temporal gives the summary only to the first run. */
export function memoOf(productName: string | null): Record<string, unknown> {
  return productName === null ? {} : { productName };
}

export function productNameOf({ memo }: Pick<WorkflowInfo, 'memo'>): string | null {
  const name = memo?.['productName'];
  return typeof name === 'string' ? name : null;
}

export interface SubscriptionResult {
  status: 'ENDED';
  endReason: EndReason | null;
  cyclesPaid: number;
  cycleCount: number;
}

/**
 * Returns the search attributes, without personal data, because Temporal does not encrypt them. None changes at every
 * renewal: one write costs as much as the rest of a renewal.
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
  if (state.openAttempt?.unsentReason !== undefined) return 'unsent';
  if (state.openAttempt && state.openAttempt.lookups > 0) return 'unknown';
  if (state.owed?.lastDeclineCode) return state.owed.lastDeclineCode;
  return state.cyclesCharged > 0 ? 'paid' : 'none';
}

export function resultOf(state: SubscriptionState): SubscriptionResult {
  const { endReason, cyclesCharged: cyclesPaid, terms } = state;
  return { status: 'ENDED', endReason, cyclesPaid, cycleCount: terms.cycleCount };
}
