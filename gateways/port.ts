import type { DeclineCode } from '../domain/declines.ts';

/** A card as the gateway describes it. `gatewayMethodId` is the gateway's id of the card. */
export interface SavedCard {
  readonly gatewayMethodId: string;
  readonly brand: string;
  /** ISO 3166 alpha-2 country of the issuer, or null where the gateway does not know. */
  readonly country: string | null;
  readonly lastFourDigit: string;
  /** 1..12 */
  readonly expiryMonth: number;
  /** Four digits. */
  readonly expiryYear: number;
}

/** Our own ids of a charge, for the gateway's book. No personal data. */
export interface ChargeReference {
  readonly merchantId: string;
  readonly intentId: string;
  readonly subscriptionId: string | null;
  readonly paymentMethodId: string;
}

export interface ChargeRequest {
  /** Chosen before the first send and the same on every resend of this attempt. */
  readonly key: string;
  readonly gatewayMethodId: string;
  readonly amountMinor: number;
  readonly currency: string;
  readonly reference: ChargeReference;
  readonly signal?: AbortSignal | undefined;
}

/** The charge was made, or the card's issuer definitely refused it. Both are final. */
export type DecidedCharge =
  | { readonly kind: 'succeeded'; readonly gatewayChargeId: string }
  | {
      readonly kind: 'declined';
      readonly code: DeclineCode;
      readonly gatewayChargeId: string | null;
    };

/** The request may have reached the gateway. Only a look-up or a resend of the key can show it. */
export interface UnknownOutcome {
  readonly kind: 'unknown';
  /** For logs and for manual review, not for payers. */
  readonly reason: string;
}

/** Nothing left this process. The same key may be sent again at any time. */
export interface NotSent {
  readonly kind: 'not_sent';
  readonly reason: string;
}

export type ChargeOutcome = DecidedCharge | NotSent | UnknownOutcome;

export interface LookupRequest {
  readonly key: string;
  /** The amount that was sent with the key. */
  readonly amountMinor: number;
  readonly currency: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * - `absent`: the gateway never got this key.
 * - `in_progress`: the gateway has the key and has not finished.
 * - `another_charge`: under this key the gateway made a charge of another amount or currency. This needs
 *   manual review.
 * - `unknown`: the look-up itself failed.
 */
export type LookupOutcome =
  | DecidedCharge
  | { readonly kind: 'another_charge'; readonly reason: string }
  | { readonly kind: 'absent' }
  | { readonly kind: 'in_progress' }
  | UnknownOutcome;

export interface RefundRequest {
  readonly key: string;
  readonly gatewayChargeId: string;
  readonly amountMinor: number;
  readonly currency: string;
  readonly signal?: AbortSignal | undefined;
}

/** Why a refund was refused. Nothing was refunded. */
export const REFUND_REFUSALS = [
  'charge_not_found',
  'charge_not_paid',
  'currency_differs',
  'exceeds_charge',
] as const;
export type RefundRefusal = (typeof REFUND_REFUSALS)[number];

export type RefundOutcome =
  | { readonly kind: 'refunded'; readonly gatewayRefundId: string }
  | { readonly kind: 'refused'; readonly reason: RefundRefusal }
  | NotSent
  | UnknownOutcome;

export interface SaveMethodRequest {
  /** Idempotency key. A repeat with the same token gives the same card. */
  readonly key: string;
  /** One-time token from the tokeniser's redirect (`payment_token`). */
  readonly token: string;
  /** The checkout session that the card form named. The token is valid with no other session. */
  readonly session: string;
  /**
   * True when no charge follows at once (a trial, a setup session). The gateway then checks the card, and
   * refuses a card that it would decline. Default false.
   */
  readonly verify?: boolean | undefined;
  /** Our own ids, for the gateway's book. */
  readonly reference?: { readonly paymentMethodId?: string; readonly customerId?: string };
  readonly signal?: AbortSignal | undefined;
}

export type SaveMethodOutcome =
  | { readonly kind: 'saved'; readonly card: SavedCard }
  /**
   * The card was refused, or the token is used, expired or from another session (`processing_error`). The
   * payer has to enter a card again. Final for this key and token.
   */
  | { readonly kind: 'refused'; readonly code: DeclineCode; readonly reason: string }
  /** The outcome is not known. A repeat with the same key is safe. */
  | UnknownOutcome;

/** What an adapter supports. Callers and the contract suite read it. */
export interface GatewayCapabilities {
  /** False: the gateway has no look-up, and every unknown outcome needs a resend of the key. */
  readonly lookup: boolean;
  readonly refunds: boolean;
  /** How long a resend of a key is certain not to charge again, in ms from its first send. */
  readonly keyLifetimeMs: number;
  /** `test`: no money moves, for test credentials only. `live`: for live credentials only. Rule: D-20. */
  readonly mode: 'test' | 'live';
}

/** A number to show on pages in test mode and in documents. Rule: D-61. */
export interface PublishedTestCard {
  readonly number: string;
  readonly label: string;
}

/**
 * The interface through which our processes move money. Card numbers never pass through it.
 *
 * Every method ends within the adapter's own time limit. A decline and an unknown outcome are values. A
 * method throws only {@link GatewayRejectedRequest}.
 */
export interface PaymentGateway {
  /** Stored with methods and attempts; never changes. */
  readonly name: string;
  readonly capabilities: GatewayCapabilities;
  /** The URL that the hosted card form posts to. Its origin belongs in the page's `form-action`. */
  readonly tokeniserUrl: string;
  /** Empty for a live gateway. */
  readonly testCards: readonly PublishedTestCard[];

  /**
   * Charges once per key. The same key with the same parameters returns the first charge. The same key
   * with other parameters throws {@link GatewayRejectedRequest} and charges nothing.
   */
  charge(request: ChargeRequest): Promise<ChargeOutcome>;
  /** Looks up the outcome of a charge by its key. Never charges. */
  lookup(request: LookupRequest): Promise<LookupOutcome>;
  /** Refunds all or part of a charge, once per key, never more than was paid. */
  refund(request: RefundRequest): Promise<RefundOutcome>;
  /** Redeems a one-time token for a saved card, once per key. */
  saveMethod(request: SaveMethodRequest): Promise<SaveMethodOutcome>;
}

/**
 * The gateway read the request and refused it as wrong: a key that was used for other parameters, bad
 * credentials, a malformed field. The request did nothing, and a repeat does not help. The cause is a
 * fault of ours, which needs manual review.
 */
export class GatewayRejectedRequest extends Error {
  override readonly name = 'GatewayRejectedRequest';
  /** HTTP status the gateway answered with. */
  readonly status: number;
  /** The gateway's own error code, such as `key_reused`. */
  readonly code: string;

  constructor(status: number, code: string) {
    super(`the gateway refused the request: ${status} ${code}`);
    this.status = status;
    this.code = code;
  }
}
