import type { DeclineCode, StatedAdvice } from '../domain/declines.ts';
import type { GatewayDispute } from '../domain/dispute.ts';
import type { GatewayHint } from '../domain/gateway-hint.ts';
import type { Locale } from '../domain/locales.ts';

/** A card as the gateway describes it. `gatewayMethodId` is the gateway's id of the card. */
export interface SavedCard {
  readonly gatewayMethodId: string;
  readonly brand: string;
  /** ISO 3166 alpha-2 country of the issuer; null if the gateway does not know the country. */
  readonly country: string | null;
  readonly lastFourDigit: string;
  /** 1..12 */
  readonly expiryMonth: number;
  /** Four digits. */
  readonly expiryYear: number;
}

/** Our own ids of a charge, which the gateway stores with the charge. No personal data. */
export interface ChargeReference {
  readonly merchantId: string;
  readonly intentId: string;
  readonly subscriptionId: string | null;
  readonly cycleNumber?: number | null;
  readonly paymentMethodId: string;
}

/** The next `count` charges of a subscription or of a payment method are declined with `code`. */
export interface ForcedDeclines {
  readonly subscriptionId: string | null;
  readonly paymentMethodId: string | null;
  readonly code: DeclineCode;
  readonly count: number;
  /** What the bank advises in these declines; null if nothing. */
  readonly advice: StatedAdvice | null;
}

/** Maximum length of an idempotency key of a charge, a refund or a saved method, in characters: Adyen's limit. */
export const KEY_LENGTH_MAX = 64;

export interface ChargeRef {
  /** Idempotency key, at most {@link KEY_LENGTH_MAX} characters, the same for every send of one attempt. */
  readonly key: string;
  /** The id from {@link PaymentGateway.prepare}; null if the charge was not prepared. */
  readonly gatewayChargeId: string | null;
  readonly amountMinor: number;
  readonly currency: string;
}

/** A payer whose browser waits for a charge, so that the payer can confirm the charge with the bank. */
export interface PresentPayer {
  /** The URL to which the bank's page sends the browser back. */
  readonly returnUrl: string;
  /** True if the charge also permits later charges while the payer is absent. */
  readonly savesMethod: boolean;
}

export interface ChargeRequest extends ChargeRef {
  readonly gatewayMethodId: string;
  /** Only for a gateway with the capability `payerPresent`. Absent: the charge is made without the payer. */
  readonly payer?: PresentPayer | undefined;
  readonly reference: ChargeReference;
  /** Business time of the attempt, for a gateway with `declinesExpired`. Default: the gateway's time. */
  readonly openedAt?: number;
  /** What the gateway shows to the merchant. */
  readonly description?: string | null;
  /** What the payer's bank shows after the name of the account. */
  readonly statementSuffix?: string | null;
}

export type DecidedCharge =
  | { readonly kind: 'succeeded'; readonly gatewayChargeId: string }
  | {
      readonly kind: 'declined';
      readonly code: DeclineCode;
      readonly gatewayChargeId: string | null;
      /** The gateway's own code, for merchants and not for payers. Null if the gateway has no other codes. */
      readonly gatewayCode: string | null;
      /** The code of the card network or the bank, such as `51`. Null if the gateway does not report it. */
      readonly networkCode: string | null;
      /** What the bank advises about another try with the payment method; null if nothing. */
      readonly advice: StatedAdvice | null;
    };

/** The gateway may have received the request. Only a look-up or a resend with the key can show its outcome. */
export interface UnknownOutcome {
  readonly kind: 'unknown';
  readonly reason: string;
}

/**
 * No effect: not sent, or refused unprocessed (Stripe: 401, 403, 429). A resend with the key is safe. `isAccountRefused`:
 * the refusal concerns the account, and so every payer.
 */
export interface NotSent {
  readonly kind: 'not_sent';
  readonly reason: string;
  readonly isAccountRefused?: true;
}

/** The gateway has the charge and has not decided it yet. A later look-up or resend with the key finds the outcome. */
export interface InProgress {
  readonly kind: 'in_progress';
  /** The page on which the payer confirms the charge with the bank. Absent: the payer has nothing to do. */
  readonly payerUrl?: string;
}

export type ChargeOutcome = DecidedCharge | InProgress | NotSent | UnknownOutcome;

/** `declined`: the gateway would decline the charge, for example because the payment method no longer exists. */
export type PrepareOutcome =
  | { readonly kind: 'prepared'; readonly gatewayChargeId: string }
  | Extract<DecidedCharge, { kind: 'declined' }>
  | NotSent
  | UnknownOutcome;

/** `withdrawn`: the gateway will never make the charge, also if a request for it is still in transit. */
export type WithdrawOutcome = DecidedCharge | { readonly kind: 'withdrawn' } | UnknownOutcome;

/** `absent`: not begun; a send now charges at most once. `another_charge`: of another amount or currency. */
export type LookupOutcome =
  | DecidedCharge
  | { readonly kind: 'another_charge'; readonly reason: string }
  | { readonly kind: 'absent' }
  | InProgress
  | UnknownOutcome;

/** Our newest charge of one merchant in the gateway's book. `createdAt` is the gateway's time in epoch ms. */
export type NewestCharge =
  | { readonly kind: 'found'; readonly gatewayChargeId: string; readonly createdAt: number }
  | { readonly kind: 'absent' }
  | NotSent
  | UnknownOutcome;

export interface RefundRequest {
  readonly key: string;
  readonly gatewayChargeId: string;
  readonly amountMinor: number;
  readonly currency: string;
}

export interface RefundRef extends RefundRequest {
  /** The id from the gateway's answer to the refund; null if no answer gave one. */
  readonly gatewayRefundId: string | null;
}

/**
 * Reasons for which a gateway refuses a refund. No money was refunded. `refund_failed`: the gateway had
 * accepted the refund, and the money did not reach the payer. `refund_not_possible`: another reason.
 */
export const REFUND_REFUSALS = [
  'balance_insufficient',
  'charge_disputed',
  'charge_not_found',
  'charge_not_paid',
  'currency_differs',
  'exceeds_charge',
  'refund_failed',
  'refund_not_possible',
] as const;
export type RefundRefusal = (typeof REFUND_REFUSALS)[number];

/** The state of a refund at its gateway. `pending`: the gateway decides the refund later. */
export type KnownRefund =
  | { readonly kind: 'refunded'; readonly gatewayRefundId: string }
  | { readonly kind: 'pending'; readonly gatewayRefundId: string }
  | {
      readonly kind: 'refused';
      readonly reason: RefundRefusal;
      /** The gateway's own code of a refusal with the reason `refund_not_possible`. */
      readonly gatewayCode?: string;
    };

export type RefundOutcome = KnownRefund | NotSent | UnknownOutcome;

/** `absent`: the gateway has no such refund. `unknown`: the look-up itself failed. */
export type RefundLookupOutcome = KnownRefund | { readonly kind: 'absent' } | UnknownOutcome;

export interface SaveMethodRequest {
  /** Idempotency key. A repeat with the same key and token returns the same card. */
  readonly key: string;
  /** One-time token from the tokeniser's redirect (`payment_token`). */
  readonly token: string;
  /** The checkout session in the card form. The token is valid only with this session. */
  readonly session: string;
  /** True if no charge follows at once. Then the gateway refuses a card that it would decline. Default false. */
  readonly verify?: boolean | undefined;
  /** Business time of the verification, for a gateway with `declinesExpired`. Default: the gateway's time. */
  readonly verifiedAt?: number;
  readonly reference?: { readonly paymentMethodId?: string; readonly customerId?: string };
}

export type SaveMethodOutcome =
  | {
      readonly kind: 'saved';
      readonly card: SavedCard;
      /** When the payer entered the card, by the gateway's clock, in epoch ms. A repeat returns the same instant. */
      readonly enteredAt: number;
    }
  /** Final: the card or its token was refused. The payer has to enter a card again. */
  | { readonly kind: 'refused'; readonly code: DeclineCode; readonly reason: string }
  | UnknownOutcome;

/** A request for a page of the gateway on which one payer enters one card. */
export interface CardEntryRequest {
  /** The id of our checkout session. The token is valid only with this session. */
  readonly session: string;
  /** The number of cards that were tried in the session. After a tried card the payer needs a new page. */
  readonly tries: number;
  readonly customer: {
    readonly id: string;
    readonly name: string | undefined;
    readonly email: string | undefined;
    /** A payment method that the gateway saved earlier for the customer; null if there is none. */
    readonly gatewayMethodId: string | null;
  };
  /** URL for the return after the payer entered a card. The gateway adds its one-time token as `payment_token`. */
  readonly returnUrl: string;
  /** URL for the return if the payer entered no card. */
  readonly cancelUrl: string;
  /** After this time, in epoch ms, we take no card. A gateway may keep its page open longer. */
  readonly expiresAt: number;
  /** What the payer agrees to, for the gateway's page, which knows no amount. A gateway may cut it. */
  readonly text: string;
  readonly locale: Locale;
}

export type CardEntryOutcome =
  | { readonly kind: 'redirect'; readonly url: string }
  | NotSent
  | UnknownOutcome;

export type AmountUse = 'charge' | 'refund';

export type DisputeLookup =
  | { readonly kind: 'found'; readonly dispute: GatewayDispute }
  | { readonly kind: 'absent' }
  | UnknownOutcome;

/** The network's name of the expected fraud, such as `made_with_stolen_card`. */
export type FraudWarningLookup =
  | { readonly kind: 'found'; readonly gatewayChargeId: string; readonly fraudType: string }
  | { readonly kind: 'absent' }
  | UnknownOutcome;

/** `removed`: the gateway cannot charge the payment method any more. */
export type MethodLookup =
  | { readonly kind: 'found'; readonly card: SavedCard }
  | { readonly kind: 'removed' }
  | UnknownOutcome;

export interface GatewayCapabilities {
  /** True if a present payer can confirm a charge with the bank. `withdraw` ends a charge that is not confirmed. */
  readonly payerPresent: boolean;
  /** True if each card is declined from the end of its month on, in business time. Absent: the gateway decides. */
  readonly declinesExpired?: true;
  /** `test`: no money moves, for test credentials only. `live`: for live credentials only. */
  readonly mode: 'test' | 'live';
}

/** A test card, which is shown on pages in test mode and in documents. */
export interface PublishedTestCard {
  readonly number: string;
  readonly label: string;
}

/**
 * The interface through which our processes move money. No request contains a card number. Every method ends within
 * the adapter's time limit, and throws only {@link GatewayRejectedRequest}.
 */
export interface PaymentGateway {
  /** The adapter's name in the rows of payment methods and attempts, which never changes. */
  readonly name: string;
  readonly capabilities: GatewayCapabilities;
  /** The URL that the hosted card form posts to. Null if payers enter cards on a page of the gateway. */
  readonly tokeniserUrl: string | null;
  /** Empty for a live gateway, and for a gateway with `openCardEntry`. */
  readonly testCards: readonly PublishedTestCard[];
  /** The name of the company that processes the cards, for payers. */
  readonly company: string;
  /** Opens a page to enter a card, the same page within a minute. Null if payers use the hosted card form. */
  readonly openCardEntry: ((request: CardEntryRequest) => Promise<CardEntryOutcome>) | null;
  /**
   * Returns why the gateway can never charge or refund the amount, as text to follow the field's name; null if it can.
   * Pure.
   */
  amountProblem(amountMinor: number, currency: string, use: AmountUse): string | null;

  /**
   * Prepares a charge and returns its id. Never moves money. A repeat with the key returns the same charge, while the
   * gateway remembers the key. Null: the gateway charges without it.
   */
  readonly prepare: ((request: ChargeRequest) => Promise<PrepareOutcome>) | null;
  /**
   * Charges once per key, without a limit of time. A repeat with the same parameters returns the first charge. A
   * repeat with other parameters throws {@link GatewayRejectedRequest} and charges nothing.
   */
  charge(request: ChargeRequest): Promise<ChargeOutcome>;
  /** Looks up the outcome of a charge, by its id if it was prepared and else by its key. Never charges. */
  lookup(charge: ChargeRef): Promise<LookupOutcome>;
  /** Ends a charge for good, unless it is decided. A repeat is safe. Null if the gateway cannot do this. */
  readonly withdraw: ((charge: ChargeRef) => Promise<WithdrawOutcome>) | null;
  /** Refunds all or part of a charge, once per key. Refuses more than the amount that is not refunded yet. */
  refund(request: RefundRequest): Promise<RefundOutcome>;
  /** By its id if known, else by its key. A refund that succeeded may be `refused` with `refund_failed` later. */
  lookupRefund(refund: RefundRef): Promise<RefundLookupOutcome>;
  /** Redeems a one-time token for a saved card, once per key. */
  saveMethod(request: SaveMethodRequest): Promise<SaveMethodOutcome>;
  /**
   * Verifies the signature of a request that claims to come from the gateway. Returns a hint for each of its events:
   * the object to look up. Sends nothing. Null if the gateway sends no events.
   */
  readonly readEvents:
    | ((
        rawBody: Buffer,
        headers: Readonly<Record<string, string | string[] | undefined>>,
      ) => GatewayHint[] | 'bad_signature')
    | null;
  /** Reads a dispute. Null if the gateway reports no disputes. */
  readonly lookupDispute: ((gatewayDisputeId: string) => Promise<DisputeLookup>) | null;
  /** Reads a warning of fraud. Null if the gateway reports none. */
  readonly lookupFraudWarning: ((gatewayWarningId: string) => Promise<FraudWarningLookup>) | null;
  /**
   * Reads the newest charge of our merchant since `sinceAt`, in epoch ms. Null: the gateway never forgets a key, so a
   * repeat never charges again.
   */
  readonly newestCharge: ((merchantId: string, sinceAt: number) => Promise<NewestCharge>) | null;
  /** Reads the present card of a payment method. */
  lookupMethod(gatewayMethodId: string): Promise<MethodLookup>;
}

/** The request was refused as wrong and had no effect. A repeat does not help: a bug or a wrong setting on our side. */
export class GatewayRejectedRequest extends Error {
  override readonly name = 'GatewayRejectedRequest';
  readonly status: number;
  /** The gateway's own error code, such as `key_reused`. */
  readonly code: string;

  constructor(status: number, code: string) {
    super(`the gateway refused the request: ${status} ${code}`);
    this.status = status;
    this.code = code;
  }
}
