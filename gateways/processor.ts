import type { GatewayCapabilities, PaymentGateway } from './port.ts';

export type Mode = GatewayCapabilities['mode'];

/** The addresses of doubles, for tests, by the processor's name. Default: the processor's address. */
export type DoubleUrls = Readonly<Record<string, string | undefined>>;

export interface RequestOptions {
  readonly timeoutMs: number;
  /** The address of a double. */
  readonly url?: string | undefined;
}

export interface AccountOptions extends RequestOptions {
  readonly accountId: string;
  readonly mode: Mode;
  /** Returns the account's present key if it differs from the key `refused`; else null. */
  readonly newerKey: (refused: string) => Promise<string | null>;
  /** Call this after each answer 429. */
  readonly onRateLimited: () => void;
}

/** A charge in the gateway's book. `createdAt` is the gateway's time in epoch ms. */
export interface ListedCharge {
  readonly merchantId: string;
  readonly intentId: string;
  readonly subscriptionId: string | null;
  readonly key: string;
  readonly gatewayChargeId: string;
  readonly outcome: 'succeeded' | 'pending' | 'declined';
  readonly amountMinor: number;
  readonly currency: string;
  readonly createdAt: number;
}

export interface ListedRefund {
  /** Our key of the refund. Null if it was made without the service, for example in Stripe's Dashboard. */
  readonly key: string | null;
  readonly gatewayRefundId: string;
  readonly merchantId: string;
  readonly gatewayChargeId: string;
  readonly createdAt: number;
  readonly amountMinor: number;
  readonly status: 'succeeded' | 'pending' | 'failed';
}

export interface ListedPage {
  readonly charges: readonly ListedCharge[];
  readonly refunds: readonly ListedRefund[];
}

/** A company that charges cards for merchants' accounts. `processors.ts` has the list. */
export interface Processor {
  /** The first part of its accounts' names, which never changes: `stripe` in `stripe:acct_…`. No colon. */
  readonly name: string;
  /** The company, for operators and merchants. */
  readonly company: string;
  /** The form of a secret key, for messages. */
  readonly shownKey: (mode: Mode) => string;
  /** The start of each webhook secret. */
  readonly webhookSecretStart: string;
  /** `canCharge`: false while the processor needs more data of the business. Throws the reason, without the key. */
  readonly checkKey: (
    secretKey: string,
    mode: Mode,
    options: RequestOptions,
  ) => Promise<{ accountId: string; canCharge: boolean }>;
  /**
   * Opens an account, once in a process. The result is called again after a change of the secrets. Two webhook secrets
   * are valid during a rotation.
   */
  readonly openAccount: (
    options: AccountOptions,
  ) => (secretKey: string, webhookSecrets: readonly string[]) => PaymentGateway;
  /** Our charges and refunds at an account from `fromAt` (epoch ms) on. Throws if it cannot read all. */
  readonly readBook: (
    secretKey: string,
    fromAt: number,
    options: RequestOptions,
  ) => AsyncIterable<ListedPage>;
}
