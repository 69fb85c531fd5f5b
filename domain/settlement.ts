import type { StatedAdvice } from './declines.ts';
import type { SettledBy } from './payment-intent.ts';

/**
 * `byPerson`: decided by manual review. `isWithdrawn`: voided before the gateway made the charge. `isProven`: the
 * gateway will never make it. `advice`: only of a decline just answered. `unansweredAt`: null if the gateway answered
 * that it has not decided. `unsent`: the gateway has no charge of the attempt; `sentAt`: the
 * sends before. `payerUrl`: where the payer has to confirm the charge. `byLookup`: not by the send's answer.
 * `withoutOutcome`: the number of requests whose answers did not say what became of the charge.
 */
export type Settlement = { withoutOutcome?: number } & (
  | { kind: 'succeeded'; gatewayChargeId: string; byPerson?: true; byLookup?: true }
  | {
      kind: 'declined';
      code: string;
      gatewayChargeId: string | null;
      gatewayCode?: string | null;
      networkCode?: string | null;
      advice?: StatedAdvice | null;
      byPerson?: true;
      byLookup?: true;
      isWithdrawn?: true;
      isProven?: true;
    }
  | { kind: 'unsent'; reason: string; isAccountRefused: boolean; sentAt: number[] }
  | { kind: 'unknown'; reason: string; unansweredAt: number | null; payerUrl?: string }
  | { kind: 'review'; reason: string }
);

/** True if an attempt was settled as not paid without the gateway's confirmation, so that its charge may come late. */
export function isUnproven(settlement: Settlement): boolean {
  return (
    settlement.kind === 'declined' &&
    settlement.isProven !== true &&
    (settlement.byPerson === true || settlement.isWithdrawn === true)
  );
}

export function settledBy(
  settlement: Extract<Settlement, { kind: 'succeeded' | 'declined' }>,
): SettledBy {
  if (settlement.byPerson) return 'person';
  if (settlement.kind === 'declined' && settlement.isWithdrawn) return 'void';
  return settlement.byLookup ? 'look_up' : 'gateway';
}
