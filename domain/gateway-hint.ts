/**
 * What an event of a gateway names. A hint says what to look at and never what happened: the object is looked
 * up. `eventId` and `type` are the gateway's. `key` is our idempotency key, if the gateway returns it.
 */
export type GatewayHint = { readonly eventId: string; readonly type: string } & (
  | { readonly kind: 'charge'; readonly gatewayChargeId: string; readonly key: string | null }
  | { readonly kind: 'refund'; readonly gatewayRefundId: string; readonly key: string | null }
  | {
      readonly kind: 'dispute';
      readonly gatewayDisputeId: string;
      readonly gatewayChargeId: string;
    }
  /** A payment method was updated or removed. The id may lack the part before the last `/`. */
  | { readonly kind: 'method'; readonly gatewayMethodId: string }
  /** A payer has entered a card on the gateway's page of our checkout session `session`. */
  | { readonly kind: 'card_entry'; readonly token: string; readonly session: string }
  | { readonly kind: 'ignored' }
);
