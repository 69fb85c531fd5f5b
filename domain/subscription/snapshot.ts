import type { Entry } from './entries.ts';
import type { SubscriptionState } from './state.ts';

export interface ClockPosition {
  /** The time that the subscription has reached on its test clock. */
  nowAt: number;
  /** The instant up to which the clock may move. */
  targetAt: number;
  /** The latest time that the row records as reached. */
  reachedAt: number;
}

/** The records with which a workflow starts. */
export interface Snapshot {
  state: SubscriptionState;
  clock: ClockPosition | null;
  /** The latest entries of the ledger, for the Web UI. */
  entries: Entry[];
  /** The number of subscriptions that the merchant had before, as far as it was counted. */
  earlier: number;
  productName: string | null;
  receiptId: string | null;
  /** True if the row is older than its run, because the database was restored. */
  isHeld: boolean;
  /** True if an endpoint waits for events of the subscription. */
  hasPendingEvents: boolean;
}
