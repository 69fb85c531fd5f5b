/**
 * The outcome of an attempt.
 *
 * `byPerson`: the outcome is a decision of manual review. `isWithdrawn`: the attempt was voided
 * before the gateway received it, because its subscription ended or was paused. `isProven`: the gateway has
 * confirmed that it will never make the voided charge. `gatewayCode`: the gateway's own code of the decline.
 * `retry`: the gateway's advice; absent if the gateway gave no answer. `review`: the attempt needs manual review.
 * `unansweredAt`: the real time of a request that the gateway did not answer; null if the gateway answered that
 * it has not decided yet. `payerUrl`: the page on which the payer has to confirm the charge.
 */
export type Settlement =
  | { kind: 'succeeded'; gatewayChargeId: string; byPerson?: true }
  | {
      kind: 'declined';
      code: string;
      gatewayChargeId: string | null;
      gatewayCode?: string | null;
      retry?: 'never' | 'later' | 'unknown';
      byPerson?: true;
      isWithdrawn?: true;
      isProven?: true;
    }
  | { kind: 'unknown'; reason: string; unansweredAt: number | null; payerUrl?: string }
  | { kind: 'review'; reason: string };

/** True if the attempt is settled as not paid without the gateway's answer: the gateway may still charge. */
export function isUnproven(settlement: Settlement): boolean {
  return (
    settlement.kind === 'declined' &&
    settlement.isProven !== true &&
    (settlement.byPerson === true || settlement.isWithdrawn === true)
  );
}
