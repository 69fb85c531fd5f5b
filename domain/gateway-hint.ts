/** The names of a charge in a gateway's event: the gateway's id, perhaps with our idempotency key, or our key alone. */
export type NamedCharge =
  | { readonly gatewayChargeId: string; readonly key: string | null }
  | { readonly gatewayChargeId: null; readonly key: string };

/** The names of a refund in a gateway's event, like those of a charge. */
export type NamedRefund =
  | { readonly gatewayRefundId: string; readonly key: string | null }
  | { readonly gatewayRefundId: null; readonly key: string };

/**
 * The object that an event of a gateway names. A hint does not contain what happened to the object: our code
 * looks the object up. `eventId` and `type` are the gateway's.
 */
export type GatewayHint = { readonly eventId: string; readonly type: string } & (
  | ({ readonly kind: 'charge' } & NamedCharge)
  | ({ readonly kind: 'refund' } & NamedRefund)
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

/** An object of a gateway that events name. The events about one subject are handled together. */
export interface GatewaySubject {
  merchantId: string;
  /** As in payment methods and attempts, such as `stripe:acct_…`. */
  gateway: string;
  /** The gateway's id of the object, or our key if events name only the key. */
  subjectId: string;
}

/** Returns the id or the key of the object that a hint names; null for an ignored event. */
export function subjectIdOf(hint: GatewayHint): string | null {
  switch (hint.kind) {
    case 'charge':
      return hint.gatewayChargeId ?? hint.key;
    case 'refund':
      return hint.gatewayRefundId ?? hint.key;
    case 'dispute':
      return hint.gatewayDisputeId;
    case 'method':
      return hint.gatewayMethodId;
    case 'card_entry':
      return hint.token;
    case 'ignored':
      return null;
  }
}
