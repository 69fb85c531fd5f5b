import { wakeAt } from '../../../domain/subscription/decide.ts';
import type { SubscriptionState } from '../../../domain/subscription/state.ts';

/** Returns the column `state` and the columns that repeat its facts for queries. */
export function rowOf(state: SubscriptionState) {
  return {
    status: state.status,
    version: state.version,
    state,
    amountMinor: state.terms.amountMinor,
    currency: state.terms.currency,
    cycleCount: state.terms.cycleCount,
    cyclesCharged: state.cyclesCharged,
    wakeAt: wakeAt(state),
  };
}
