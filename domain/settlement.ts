/**
 * The outcome of an attempt.
 *
 * `byPerson`: the outcome is a decision of manual review. `isWithdrawn`: the attempt was voided, and the gateway
 * had not made the charge. `isProven`: the gateway has confirmed that it will never make the voided charge.
 * `gatewayCode`: the gateway's own code of the decline.
 * `retry`: the gateway's advice on another try; present only in a decline that the gateway has just answered.
 * `review`: the attempt needs manual review.
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

/**
 * True if manual review or a void settled the attempt as not paid, and the gateway has not confirmed that it will
 * never make the charge. Such a charge may still come late.
 */
export function isUnproven(settlement: Settlement): boolean {
  return (
    settlement.kind === 'declined' &&
    settlement.isProven !== true &&
    (settlement.byPerson === true || settlement.isWithdrawn === true)
  );
}
