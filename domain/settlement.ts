/**
 * The outcome of an attempt, from the gateway's answer or from manual review (`byPerson`). `isWithdrawn`:
 * the attempt was voided before the gateway received it, because its subscription ended or was paused.
 * `review`: the attempt needs manual review. `unansweredAt`: the real time at which the gateway was asked and
 * did not answer; null if it answered that it has not decided yet.
 */
export type Settlement =
  | { kind: 'succeeded'; gatewayChargeId: string; byPerson?: true }
  | {
      kind: 'declined';
      code: string;
      gatewayChargeId: string | null;
      byPerson?: true;
      isWithdrawn?: true;
    }
  | { kind: 'unknown'; reason: string; unansweredAt: number | null }
  | { kind: 'review'; reason: string };

/** True if the attempt is settled as not paid without the gateway's answer: the gateway may still charge. */
export function isUnproven(settlement: Settlement): boolean {
  return (
    settlement.kind === 'declined' &&
    (settlement.byPerson === true || settlement.isWithdrawn === true)
  );
}
