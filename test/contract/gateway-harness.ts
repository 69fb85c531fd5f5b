import { randomUUID } from 'node:crypto';
import type { DeclineCode } from '../../domain/declines.ts';
import type { ChargeRequest, PaymentGateway } from '../../gateways/port.ts';

/** What went wrong on purpose with the next request of an operation. */
export interface FaultOrder {
  readonly operation: 'charge' | 'lookup' | 'methods' | 'refund';
  readonly fault: 'delay' | 'error_500' | 'lose_answer';
  readonly effect?: 'done' | 'none';
  readonly delayMs?: number;
}

/** One adapter with the means to look behind it. */
export interface GatewayHarness {
  readonly gateway: PaymentGateway;
  /** The same gateway through a client that gives up within a fraction of a second. */
  readonly impatient: PaymentGateway;
  /** What a payer's browser comes back with after typing this number into the card form. */
  issueToken(number: string, session: string): Promise<string>;
  readonly payingCard: string;
  readonly decliningCards: readonly { readonly number: string; readonly code: DeclineCode }[];
  /** Null where the gateway cannot be made to fail: those tests are reported as skipped. */
  readonly faults: {
    /** Hits exactly one request. */
    once(order: FaultOrder): Promise<void>;
    /** Declines the next charges of a subscription. */
    decline(subscriptionId: string, code: DeclineCode, count: number): Promise<void>;
  } | null;
  /** The gateway's own book of one subscription, in order. */
  book(
    subscriptionId: string,
  ): Promise<{ key: string; outcome: string; amountMinor: number; sentCount: number }[]>;
  close(): Promise<void>;
}

/** The harness, once `beforeAll` has made it. */
export type Current = () => GatewayHarness;

/** A saved card of this number. */
export async function savedMethod({ gateway, issueToken }: GatewayHarness, number: string) {
  const session = `cs_${randomUUID()}`;
  const token = await issueToken(number, session);
  const outcome = await gateway.saveMethod({ key: `save:${session}`, token, session });
  if (outcome.kind !== 'saved') throw new Error(`not saved: ${JSON.stringify(outcome)}`);
  return outcome.card.gatewayMethodId;
}

/** A charge of 19.99 USD for a subscription of its own; state only what matters. */
export async function chargeRequest(
  harness: GatewayHarness,
  changes: Partial<ChargeRequest> = {},
): Promise<ChargeRequest & { subscriptionId: string }> {
  const subscriptionId = `sub_${randomUUID()}`;
  const gatewayMethodId =
    changes.gatewayMethodId ?? (await savedMethod(harness, harness.payingCard));
  return {
    key: `charge:in_${randomUUID()}:1`,
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
  };
}
