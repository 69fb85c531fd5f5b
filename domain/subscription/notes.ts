import type { ReachedLimit } from '../card-limits.ts';
import type { DisputeStatus } from '../dispute.ts';
import type { DeclineCode } from '../declines.ts';
import { RETRIES_MAX } from '../retry-plan.ts';
import { owe } from './apply-attempt.ts';
import { changed } from './change.ts';
import type { Change } from './change.ts';
import type { ChargeStep } from './decide.ts';
import type { ChargeAtGateway } from './entries.ts';
import type { SubscriptionState } from './state.ts';

/** Adds a dispute to the ledger. Changes nothing else, because the merchant decides what follows. */
export function applyDispute(
  state: SubscriptionState,
  dispute: { status: DisputeStatus; amountMinor: number; currency: string; reason: string },
  now: number,
): Change {
  const { status, amountMinor, currency, reason } = dispute;
  const facts = { status, amountMinor, currency, reason };
  return changed(state, {}, { at: now, kind: 'disputed', actor: 'gateway', ...facts });
}

/** Adds a late charge to the ledger. The charge pays no cycle. */
export function applyLateCharge(
  state: SubscriptionState,
  charge: ChargeAtGateway,
  now: number,
): Change {
  const { amountMinor, currency, gatewayKey } = charge;
  const facts = { amountMinor, currency, gatewayKey };
  return changed(state, {}, { at: now, kind: 'late_charge', actor: 'gateway', ...facts });
}

/** After these declines the payer has to act, also if the card has new details. */
const NOT_CURED: readonly (string | null)[] = [
  'authentication_required',
  'authorisation_revoked',
  'fraudulent',
  'payment_method_removed',
] satisfies DeclineCode[];

/**
 * The card network has new details of a card whose decline stopped the retries: one more attempt follows, in PAUSED after
 * the pause. Null if none does.
 */
export function applyNewDetails(state: SubscriptionState, now: number): Change | null {
  const { owed, status, openAttempt } = state;
  if (!owed?.retriesStopped || openAttempt || NOT_CURED.includes(owed.lastDeclineCode)) return null;
  if (status !== 'UNPAID' && status !== 'PAUSED') return null;
  const planned =
    status === 'UNPAID'
      ? {
          nextRetryAt: now,
          dateSetBy: { actor: 'gateway', said: 'new_details' } as const,
        }
      : {};
  // More than any plan may have, so that no other retry follows.
  const retriesUsed = RETRIES_MAX + 1;
  return changed(
    state,
    { owed: { ...owed, retriesStopped: false, retriesUsed, ...planned } },
    { at: now, kind: 'details_updated', actor: 'gateway' },
  );
}

/** The attempt of the due step `step` has to wait, because of the limits of its card. */
export function applyCardLimit(
  state: SubscriptionState,
  step: ChargeStep,
  limit: ReachedLimit,
  now: number,
): Change {
  const { owed } = step.do === 'chargeCycle' ? owe(state, step.dueAt) : state;
  if (!owed) throw new Error(`${state.subscriptionId}: no cycle is owed`);
  const { untilAt, attempts, hours } = limit;
  const dateSetBy = { actor: 'schedule', attempts, hours } as const;
  const facts = { cycleNumber: owed.cycleNumber, untilAt, attempts, hours };
  return changed(
    state,
    { owed: { ...owed, nextRetryAt: untilAt, dateSetBy } },
    { at: now, actor: 'schedule', kind: 'limited', ...facts },
  );
}
