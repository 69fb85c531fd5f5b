import type { DeclineCode } from '../domain/declines.ts';

/** What a gateway tells of a card it keeps. `gatewayMethodId` is the gateway's name for it. */
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

/** Our own ids behind a charge, for the gateway's book. No personal data. */
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

/** The charge was made, or definitely refused by the card's side. Both are final. */
export type DecidedCharge =
  | { readonly kind: 'succeeded'; readonly gatewayChargeId: string }
  | {
      readonly kind: 'declined';
      readonly code: DeclineCode;
      readonly gatewayChargeId: string | null;
    };

/** The request may have reached the gateway. Only a look-up or a resend of the key can tell. */
export interface UnknownOutcome {
  readonly kind: 'unknown';
  /** For logs and for the person who settles it; not for payers. */
  readonly reason: string;
}

/** Nothing left this process: sending the same key again is safe at any time. */
export interface NotSent {
  readonly kind: 'not_sent';
  readonly reason: string;
}

export type ChargeOutcome = DecidedCharge | NotSent | UnknownOutcome;

export interface LookupRequest {
  readonly key: string;
  /** What was to be charged under it. */
  readonly amountMinor: number;
  readonly currency: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * `absent`: the gateway never got this key; `in_progress`: it has it and is not finished;
 * `another_charge`: it made one of another amount or currency, which is for a person to sort out. A
 * look-up that found nothing out is `unknown`.
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

/** Why a refund was refused; nothing was given back. */
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
  /** Idempotency key; a repeat with the same token gives the same card. */
  readonly key: string;
  /** One-time token from the tokeniser's redirect (`payment_token`). */
  readonly token: string;
  /** The checkout session that the card form named; a token works with no other. */
  readonly session: string;
  /**
   * True when no charge follows at once (a trial, a setup session): the gateway then checks the
   * card now, and a card that would be declined is refused here. Default false.
   */
  readonly verify?: boolean | undefined;
  /** Our own ids, for the gateway's book. */
  readonly reference?: { readonly paymentMethodId?: string; readonly customerId?: string };
  readonly signal?: AbortSignal | undefined;
}

export type SaveMethodOutcome =
  | { readonly kind: 'saved'; readonly card: SavedCard }
  /**
   * The card was refused, or the token is spent, expired or another session's (`processing_error`):
   * the payer has to enter a card again. Final for this key and token.
   */
  | { readonly kind: 'refused'; readonly code: DeclineCode; readonly reason: string }
  /** Nothing is known; repeating the same key is safe. */
  | UnknownOutcome;

/** What an adapter can do, as data. Callers and the contract suite read it. */
export interface GatewayCapabilities {
  /** `lookup` tells absent from decided. Without it every doubt needs a resend of the key. */
  readonly lookup: boolean;
  readonly refunds: boolean;
  /** How long a resend of a key is certain not to charge again, in ms from its first send. */
  readonly keyLifetimeMs: number;
  /** `test`: no money moves, test credentials only; `live`: the reverse. Rule: D-20. */
  readonly mode: 'test' | 'live';
}

/** A number to show on pages in test mode and in documents. Rule: D-61. */
export interface PublishedTestCard {
  readonly number: string;
  readonly label: string;
}

/**
 * The one way our processes move money. Card numbers never pass through it.
 *
 * Every method answers within the adapter's own time limit and returns what could have happened as
 * a value: a decline is a value, and so is not knowing. A method throws only
 * {@link GatewayRejectedRequest}.
 */
export interface PaymentGateway {
  /** Stored with methods and attempts; never changes. */
  readonly name: string;
  readonly capabilities: GatewayCapabilities;
  /** Where the hosted card form posts to; its origin belongs in the page's `form-action`. */
  readonly tokeniserUrl: string;
  /** Empty for a live gateway. */
  readonly testCards: readonly PublishedTestCard[];

  /**
   * Charges once per key. The same key with the same parameters answers with the first charge;
   * with other parameters it throws {@link GatewayRejectedRequest} and charges nothing.
   */
  charge(request: ChargeRequest): Promise<ChargeOutcome>;
  /** What became of a charge key. Never charges. */
  lookup(request: LookupRequest): Promise<LookupOutcome>;
  /** Gives back all or part of a charge, once per key, never more than was paid. */
  refund(request: RefundRequest): Promise<RefundOutcome>;
  /** Redeems a one-time token for a card the gateway keeps, once per key. */
  saveMethod(request: SaveMethodRequest): Promise<SaveMethodOutcome>;
}

/**
 * The gateway read the request and refused it as wrong: a key that was used for other parameters,
 * bad credentials, a malformed field. This request did nothing and repeating it will not help: a
 * fault of ours, for a person.
 */
export class GatewayRejectedRequest extends Error {
  override readonly name = 'GatewayRejectedRequest';
  /** HTTP status the gateway answered with. */
  readonly status: number;
  /** The gateway's own word for what is wrong, such as `key_reused`. */
  readonly code: string;

  constructor(status: number, code: string) {
    super(`the gateway refused the request: ${status} ${code}`);
    this.status = status;
    this.code = code;
  }
}
