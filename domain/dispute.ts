/** WON: the merchant keeps the money. LOST: the payer keeps it. CLOSED: ended without a decision. */
export const DISPUTE_STATUSES = ['OPEN', 'WON', 'LOST', 'CLOSED'] as const;
export type DisputeStatus = (typeof DISPUTE_STATUSES)[number];

export interface GatewayDispute {
  readonly gatewayChargeId: string;
  readonly amountMinor: number;
  readonly currency: string;
  readonly reason: string;
  readonly status: DisputeStatus;
  /** Real time. */
  readonly openedAt: number;
}
