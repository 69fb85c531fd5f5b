import type { DisputeStatus } from '../dispute.ts';
import { changed } from './change.ts';
import type { Change } from './change.ts';
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
