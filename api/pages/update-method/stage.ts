import { isSuperseded, needsAuthentication } from '../../../domain/subscription/authentication.ts';
import { takesNewMethod } from '../../../domain/subscription/state.ts';
import type {
  CyclePayment,
  UpdatableSubscription,
  UpdateTry,
} from '../../../db/repositories/subscriptions/method-updates.ts';
import type { PaidPayment } from '../../../db/repositories/payments/receipts.ts';
import { isAtBank, isAwaited, isUnconfirmed } from '../shared/bank.tsx';
import { CARD_TRIES_MAX } from '../../../domain/payment-method.ts';

/** A valid link, its subscription, and the cards tried on the page. */
export interface MethodUpdate extends UpdatableSubscription {
  readonly token: string;
  readonly sessionId: string;
  readonly expiresAt: number;
  /** Oldest first. */
  readonly tries: readonly UpdateTry[];
  readonly owedPayment: CyclePayment | null;
  /** The bank has asked for a confirmation, and the card's gateway supports it. */
  readonly canConfirm: boolean;
  /** When the latest card of this page was saved, in business time; null if none was. */
  readonly changedAt: number | null;
  /** The first payment of a cycle that succeeded at `changedAt` or later; null without one. */
  readonly paid: PaidPayment | null;
}

/**
 * `saved`: the card was replaced. `paid`: and the owed payment succeeded. `closed`: the status allows no new method.
 * `locked`: too many cards were tried.
 */
export type UpdateStage =
  | 'open'
  | 'locked'
  | 'processing'
  | 'saved'
  | 'paid'
  | 'expired'
  | 'closed';

/** `nowAt` is real time, like `expiresAt`. */
export function updateStageOf(
  { tries, state, mode, expiresAt, paid, owedPayment }: MethodUpdate,
  nowAt: number,
): UpdateStage {
  if (nowAt >= expiresAt) return 'expired';
  const attempt = owedPayment?.attempt ?? null;
  const isLocked = tries.length >= CARD_TRIES_MAX[mode];
  if (takesNewMethod(state.status) && isAwaited(attempt)) {
    if (isSuperseded(state)) return 'processing';
    // While the bank waits for the payer, the payer may give another card.
    if (isAtBank(attempt)) return isLocked ? 'locked' : 'open';
  }
  const results = tries.flatMap(({ command }) => (command ? [command.result] : []));
  for (const result of results) {
    if (result === null) return 'processing';
    if (result.kind === 'checkout' && result.outcome !== 'declined') return result.outcome;
  }
  if (!takesNewMethod(state.status)) return 'closed';
  // The first charge of the latest card failed, and a later one succeeded.
  if (isLatestKept(tries) && paid !== null && state.status !== 'UNPAID') return 'paid';
  return isLocked ? 'locked' : 'open';
}

/** `offered`: the payer can confirm with the bank. `begun`: the bank waits, or the outcome is unknown. */
export function confirmationOf({
  state,
  canConfirm,
  owedPayment,
}: MethodUpdate): 'offered' | 'begun' | null {
  if (state.openAttempt && isAwaited(owedPayment?.attempt ?? null)) return 'begun';
  return canConfirm && needsAuthentication(state) ? 'offered' : null;
}

export function isLatestUnconfirmed({ owedPayment }: MethodUpdate): boolean {
  return isUnconfirmed(owedPayment?.attempt ?? null);
}

export function isLatestKept(tries: readonly UpdateTry[]): boolean {
  const result = tries.at(-1)?.command?.result;
  return result?.kind === 'checkout' && result.outcome === 'declined';
}
