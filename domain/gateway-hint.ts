/** The object that an event names. What happened to it is looked up. `eventId` and `type` are the gateway's. */
export type GatewayHint = { readonly eventId: string; readonly type: string } & (
  | { readonly kind: 'charge'; readonly gatewayChargeId: string }
  /** `key`: our idempotency key, by which a refund is found whose answer was lost. */
  | { readonly kind: 'refund'; readonly gatewayRefundId: string; readonly key: string | null }
  | {
      readonly kind: 'dispute';
      readonly gatewayDisputeId: string;
      readonly gatewayChargeId: string;
    }
  /** The network expects that the payer reports the charge as fraud. */
  | {
      readonly kind: 'fraud_warning';
      readonly gatewayWarningId: string;
      readonly gatewayChargeId: string;
    }
  /** A payment method was updated or removed. The id may lack the part before the last `/`. */
  | { readonly kind: 'method'; readonly gatewayMethodId: string }
  /** A payer has entered a card on the gateway's page of our checkout session `session`. */
  | { readonly kind: 'card_entry'; readonly token: string; readonly session: string }
  | { readonly kind: 'ignored' }
);

/** An object of a gateway that events name. The events about one subject are handled together. */
export interface GatewaySubject {
  merchantId: string;
  /** As in payment methods and attempts, such as `stripe:acct_…`. */
  gateway: string;
  subjectId: string;
}

export function subjectIdOf(hint: GatewayHint): string | null {
  switch (hint.kind) {
    case 'charge':
      return hint.gatewayChargeId;
    case 'refund':
      return hint.gatewayRefundId;
    case 'dispute':
      return hint.gatewayDisputeId;
    case 'fraud_warning':
      return hint.gatewayWarningId;
    case 'method':
      return hint.gatewayMethodId;
    case 'card_entry':
      return hint.token;
    case 'ignored':
      return null;
  }
}
