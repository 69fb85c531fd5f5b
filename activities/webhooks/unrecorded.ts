import type { ClaimedDelivery } from '../../db/repositories/webhooks/claims.ts';
import type { RecordedAttempt } from '../../db/repositories/webhooks/deliveries.ts';
import type { BreakerOutcome } from '../../domain/endpoint-breaker.ts';

export type Outcome = BreakerOutcome & { updatedAt: number };

/** What a drain must still record. `unsent`: claimed deliveries that it will not send. */
export interface Unrecorded {
  readonly attempts: RecordedAttempt[];
  readonly outcomes: Outcome[];
  readonly unsent: ClaimedDelivery[];
}

export const nothingUnrecorded = (): Unrecorded => ({ attempts: [], outcomes: [], unsent: [] });

export const joinUnrecorded = (first: Unrecorded, then: Unrecorded): Unrecorded => ({
  attempts: [...first.attempts, ...then.attempts],
  outcomes: [...first.outcomes, ...then.outcomes],
  unsent: [...first.unsent, ...then.unsent],
});
