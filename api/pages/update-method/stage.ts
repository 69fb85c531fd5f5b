import type { UpdatableSubscription, UpdateTry } from '../../../db/repositories/method-updates.ts';
import { CARD_TRIES_MAX } from '../shared/limits.ts';

/** A link that is ours, the subscription it names, and the cards that were given by it. */
export interface MethodUpdate extends UpdatableSubscription {
  readonly token: string;
  readonly sessionId: string;
  readonly expiresAt: number;
  /** Oldest first. */
  readonly tries: readonly UpdateTry[];
}

/**
 * Where an update stands: `saved` and `paid` are what came of it, the latter with the payment that
 * was owed; `closed`: the subscription takes no other method as it is. `locked`: too many cards were
 * declined.
 */
export type UpdateStage =
  | 'open'
  | 'locked'
  | 'processing'
  | 'saved'
  | 'paid'
  | 'expired'
  | 'closed';

/** `nowAt` is real time, like the life of a link. Rule: D-33. */
export function updateStageOf(
  { tries, state, expiresAt }: MethodUpdate,
  nowAt: number,
): UpdateStage {
  if (nowAt >= expiresAt) return 'expired';
  const results = tries.flatMap(({ command }) => (command ? [command.result] : []));
  for (const result of results) {
    if (result === null) return 'processing';
    if (result.kind === 'checkout' && result.outcome !== 'declined') return result.outcome;
  }
  if (state.status !== 'TRIALING' && state.status !== 'ACTIVE' && state.status !== 'UNPAID') {
    return 'closed';
  }
  // The card was kept, and only a payment leads out of UNPAID into these.
  if (isLatestKept(tries) && state.status !== 'UNPAID') return 'paid';
  return tries.length >= CARD_TRIES_MAX ? 'locked' : 'open';
}

/** True when the latest card was saved although the payment with it was declined. Rule: D-30. */
export function isLatestKept(tries: readonly UpdateTry[]): boolean {
  const result = tries.at(-1)?.command?.result;
  return result?.kind === 'checkout' && result.outcome === 'declined';
}
