import { randomUUID } from 'node:crypto';
import { test } from 'vitest';
import type { DeclineCode } from '../../domain/declines.ts';
import type { ChargeOutcome, ChargeRequest, PaymentGateway } from '../../gateways/port.ts';

/** A fault for the next request of an operation. */
export interface FaultOrder {
  readonly operation: 'charge' | 'lookup' | 'methods' | 'refund';
  readonly fault: 'delay' | 'error_500' | 'lose_answer';
  readonly effect?: 'done' | 'none';
  readonly delayMs?: number;
}

/** One gateway adapter, with access to the gateway's own records. */
export interface GatewayHarness {
  readonly gateway: PaymentGateway;
  /**
   * Sends a charge whose answer a fault delays, and gives up after the gateway has received the request. Returns the
   * outcome that the caller gets.
   */
  chargeAndGiveUp(request: ChargeRequest): Promise<ChargeOutcome>;
  /** Returns the token with which the payer's browser returns from the card form of this session. */
  issueToken(number: string, session: string): Promise<string>;
  /** Saves a card without the card form, and returns its id at the gateway. Null: `savedMethod` uses the form. */
  readonly saveCard: ((number: string) => Promise<string>) | null;
  /** The reason why a token may be redeemed twice; null if each token can be redeemed only once. */
  readonly rereadableTokens: string | null;
  readonly payingCard: string;
  readonly decliningCards: readonly { readonly number: string; readonly code: DeclineCode }[];
  /** Null if the gateway cannot fail on demand. The tests with faults are then skipped. */
  readonly faults: {
    /** Applies a fault to exactly one request. */
    once(order: FaultOrder): Promise<void>;
    /**
     * Declines the next charges of a subscription. With `advice`, each decline also has this advice against a retry,
     * and `code` as the gateway's own code.
     */
    decline(
      subscriptionId: string,
      code: DeclineCode,
      count: number,
      advice?: 'never',
    ): Promise<void>;
  } | null;
  /** Makes refunds pending, and decides them. Null if the gateway cannot do this on demand. */
  readonly refunds: {
    /** Makes the next refund of the charge pending. Later refunds may be pending, too. */
    leavePending(gatewayChargeId: string): Promise<void>;
    /** Decides a pending refund, or makes a refund fail that had succeeded. */
    decide(
      refund: { key: string; gatewayRefundId: string },
      status: 'succeeded' | 'failed',
    ): Promise<void>;
  } | null;
  /** The charges of one subscription in the gateway's own records, in order. */
  book(
    subscriptionId: string,
  ): Promise<{ key: string; outcome: string; amountMinor: number; sentCount: number }[]>;
  close(): Promise<void>;
}

export type GatewayTest = ReturnType<typeof onGateway>;

/** The `test` function of one adapter's contract tests. */
export const onGateway = (start: () => Promise<GatewayHarness>) =>
  test
    // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
    .extend('harness', { scope: 'file' }, async ({}, { onCleanup }) => {
      const harness = await start();
      onCleanup(() => harness.close());
      return harness;
    })
    .extend('faults', async ({ harness: { faults } }) => {
      if (faults === null) throw new Error('this harness declares canFail and has no faults');
      return faults;
    });

/** Saves a card with this number and returns its id at the gateway. */
export async function savedMethod(
  { gateway, issueToken, saveCard }: Pick<GatewayHarness, 'gateway' | 'issueToken' | 'saveCard'>,
  number: string,
): Promise<string> {
  if (saveCard !== null) return saveCard(number);
  const session = `cs_${randomUUID()}`;
  const token = await issueToken(number, session);
  const outcome = await gateway.saveMethod({ key: `save:${session}`, token, session });
  if (outcome.kind !== 'saved') throw new Error(`not saved: ${JSON.stringify(outcome)}`);
  return outcome.card.gatewayMethodId;
}

/**
 * A request to charge 19.99 USD for a new subscription, with these changes. Saves the paying card unless the
 * changes name a method, and prepares the charge if the gateway prepares charges.
 */
export async function chargeRequest(
  harness: Pick<GatewayHarness, 'gateway' | 'issueToken' | 'payingCard' | 'saveCard'>,
  changes: Partial<ChargeRequest> = {},
): Promise<ChargeRequest & { subscriptionId: string }> {
  const subscriptionId = `sub_${randomUUID()}`;
  const gatewayMethodId =
    changes.gatewayMethodId ?? (await savedMethod(harness, harness.payingCard));
  return prepared(harness.gateway, {
    key: `charge:in_${randomUUID()}:1`,
    gatewayChargeId: null,
    amountMinor: 1_999,
    currency: 'USD',
    reference: {
      merchantId: 'mer_1',
      intentId: 'in_1',
      subscriptionId,
      paymentMethodId: 'pmt_1',
    },
    ...changes,
    gatewayMethodId,
    subscriptionId,
  });
}

/** Prepares the charge if the gateway prepares charges, and adds the id of the charge to the request. */
export async function prepared<Request extends ChargeRequest>(
  { prepare }: PaymentGateway,
  request: Request,
): Promise<Request> {
  if (prepare === null) return request;
  const outcome = await prepare(request);
  if (outcome.kind !== 'prepared') throw new Error(`not prepared: ${JSON.stringify(outcome)}`);
  return { ...request, gatewayChargeId: outcome.gatewayChargeId };
}
