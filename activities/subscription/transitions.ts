import {
  endHold,
  findOtherVersion,
  loadSnapshot,
  recordClockReached,
  recordHold,
} from '../../db/repositories/subscriptions/row.ts';
import type { VersionRef } from '../../db/repositories/subscriptions/row.ts';
import { writeChange } from '../../db/repositories/subscriptions/write-change.ts';
import type { NotMoved, Transition } from '../../db/repositories/subscriptions/write-change.ts';
import type { StreamRef } from '../../domain/events.ts';
import type { Place } from '../../domain/subscription/renewal-places.ts';
import type { Snapshot } from '../../domain/subscription/snapshot.ts';
import type { SubscriptionState } from '../../domain/subscription/state.ts';
import { failpoint } from '../../runtime/failpoints.ts';
import { isOpenAttemptDecided } from '../../db/repositories/payments/reviews.ts';
import { invalidInput } from '../failures.ts';
import { redeemToken } from '../charging/redeem-token.ts';
import type { RedeemTokenInput, RedeemTokenResult } from '../charging/redeem-token.ts';
import { completeChange } from './complete-change.ts';
import type { ActivityDeps } from '../deps.ts';

/** Creates the activities of a subscription, except the charge. A repeat of each activity is safe. */
export function createTransitionActivities(
  deps: Pick<
    ActivityDeps,
    'db' | 'gateways' | 'wakeStream' | 'places' | 'links' | 'endPayerPriority'
  >,
) {
  return {
    /** Records one transition once, with the delay of the next charge. `writeChange` describes the result. */
    async record({
      realNowAt,
      ...given
    }: Transition & { realNowAt: number }): Promise<
      NotMoved | { kind: 'recorded'; place: Place | null }
    > {
      const { change, place } = completeChange(deps, given.change, realNowAt);
      const { merchantId, subscriptionId, latest } = change.state;
      const recorded = await writeChange(deps.db, { ...given, change });
      failpoint('after_transition');
      // A repeat, too: the process of the first call may have died before the delivery.
      if (recorded.kind !== 'stale' && change.events.length > 0) {
        await deps.wakeStream({ merchantId, streamId: subscriptionId });
      }
      if (recorded.kind !== 'recorded') return recorded;
      if (latest.kind === 'trial_begun') deps.endPayerPriority({ merchantId, subscriptionId });
      return { kind: 'recorded', place };
    },

    /** Requests the delivery of the stream's pending webhook events. Never throws. A repeat is safe. */
    async wakeStream(stream: StreamRef): Promise<void> {
      await deps.wakeStream(stream);
    },

    /**
     * Records that every step up to `reachedAt` on the test clock is executed. If the row has another version, returns
     * its state, else null.
     */
    async clockReached(
      input: VersionRef & { reachedAt: number },
    ): Promise<SubscriptionState | null> {
      const { reachedAt, ...at } = input;
      return recordClockReached(deps.db, at, reachedAt);
    },

    /**
     * Loads the subscription's row. `isReviewDecided`: an operator has decided the open attempt, and the state does
     * not have it yet. A `version` above the row's is recorded as a hold; else a hold ends.
     */
    async loadSubscription(input: {
      merchantId: string;
      subscriptionId: string;
      version: number;
    }): Promise<Pick<Snapshot, 'state' | 'entries' | 'clock'> & { isReviewDecided?: boolean }> {
      const { version, ...ref } = input;
      const row = await loadSnapshot(deps.db, ref);
      if (!row) throw invalidInput(`no subscription ${ref.subscriptionId}`);
      const snapshot = { state: row.state, entries: row.entries, clock: row.clock };
      await (row.state.version < version ? recordHold : endHold)(deps.db, ref);
      // Another process may have recorded a transition and died before it delivered the events.
      await deps.wakeStream({ merchantId: ref.merchantId, streamId: ref.subscriptionId });
      const isReviewDecided = await isOpenAttemptDecided(deps.db, snapshot.state);
      return isReviewDecided ? { ...snapshot, isReviewDecided } : snapshot;
    },

    /** See `redeemToken`. Sends nothing and returns `adopt` if the row has another version. */
    async redeemToken({
      at,
      ...input
    }: RedeemTokenInput & { at: VersionRef }): Promise<
      RedeemTokenResult | { kind: 'adopt'; state: SubscriptionState }
    > {
      const state = await findOtherVersion(deps.db, at);
      return state ? { kind: 'adopt', state } : redeemToken(deps, input);
    },
  };
}
