import type { DisputeStatus } from '../dispute.ts';
import { formatAmount } from '../money.ts';
import { changed } from './change.ts';
import type { Change } from './change.ts';
import type { SubscriptionState } from './state.ts';

const WHAT: Readonly<Record<DisputeStatus, string>> = {
  OPEN: 'a payment is disputed',
  WON: 'the dispute of a payment was won',
  LOST: 'the dispute of a payment was lost',
  CLOSED: 'the dispute of a payment ended without a decision',
};

/** Adds a dispute to the timeline. Changes nothing else, because the merchant decides what follows. */
export function applyDispute(
  state: SubscriptionState,
  dispute: { status: DisputeStatus; amountMinor: number; currency: string; reason: string },
  now: number,
): Change {
  const { status, amountMinor, currency, reason } = dispute;
  const what = `${WHAT[status]}, ${formatAmount(amountMinor, currency)}`;
  return changed(state, {}, { at: now, what, why: `reason: ${reason}`, actor: 'gateway' });
}

/** Adds a late charge to the timeline. The charge pays no cycle. */
export function applyLateCharge(
  state: SubscriptionState,
  charge: { amountMinor: number; currency: string; gatewayKey: string },
  now: number,
): Change {
  const what = `a late charge came to light, ${formatAmount(charge.amountMinor, charge.currency)}`;
  const why = `${charge.gatewayKey} had been settled as not paid; it is given back`;
  return changed(state, {}, { at: now, what, why, actor: 'gateway' });
}
