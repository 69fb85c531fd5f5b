import type { ReservedSql } from 'postgres';
import { accountBinding } from '../../gateways/merchant-gateways.ts';
import { recordedCharges } from './gateway-control.ts';
import { listCharges, listRefunds } from './stripe-charges.ts';
import type { ListedCharge, ListedRefund } from './stripe-charges.ts';
import { createStripeClient } from '../../gateways/stripe/client.ts';

export type BookRow = Record<string, string | number | null>;

export interface BookPage {
  readonly charges: BookRow[];
  readonly refunds: BookRow[];
}

/** A gateway's book. `from` is the instant from which the book is read. */
export interface GatewayBook {
  readonly gateway: string;
  readonly from: Date;
  readonly pages: AsyncIterable<BookPage>;
}

export interface StripePlace {
  readonly sealing: { open(sealed: Uint8Array, boundTo: string): string };
  readonly url?: string | undefined;
  /** The number of past days whose charges and refunds are compared. */
  readonly days: number;
}

const SANDBOX = 'sandbox';
const TIMEOUT_MS = 30_000;
const DAY_MS = 86_400_000;
/** Stripe's clock may differ from ours by this time, in ms. */
const CLOCK_MARGIN_MS = 60_000;

export function sandboxBook(url: string, key: string): GatewayBook {
  return { gateway: SANDBOX, from: new Date(0), pages: readSandbox(url, key) };
}

type OrderIds = Pick<ListedCharge, 'merchantId' | 'intentId' | 'subscriptionId'>;

interface SandboxCharge extends Omit<ListedCharge, keyof OrderIds | 'gatewayChargeId'> {
  readonly id: string;
  readonly reference: OrderIds;
  readonly refunds: readonly Omit<ListedRefund, 'merchantId' | 'gatewayChargeId'>[];
}

async function* readSandbox(url: string, key: string): AsyncGenerator<BookPage> {
  for await (const page of recordedCharges<SandboxCharge>(url, key)) {
    yield {
      charges: page.map((charge) =>
        rowOf(SANDBOX, { ...charge, ...charge.reference, gatewayChargeId: charge.id }),
      ),
      refunds: page.flatMap(({ id, refunds, reference: { merchantId } }) =>
        refunds.map((refund) =>
          refundRowOf(SANDBOX, { ...refund, merchantId, gatewayChargeId: id }),
        ),
      ),
    };
  }
}

/** The books of all merchants' accounts at Stripe, each with the charges and refunds of the last `days` days. */
export async function stripeBooks(
  session: ReservedSql,
  { sealing, url, days }: StripePlace,
): Promise<GatewayBook[]> {
  const accounts = await session<{ merchantId: string; name: string; sealedKey: Buffer }[]>`
    select merchant_id as "merchantId", name, sealed_key as "sealedKey" from merchant_gateway`;
  const fromAt = Date.now() - days * DAY_MS;
  return accounts.map(({ merchantId, name, sealedKey }) => {
    // Another installation may use the account, too.
    const isOwn = (listed: { readonly merchantId: string }) => listed.merchantId === merchantId;
    const pages = async function* (): AsyncGenerator<BookPage> {
      const secretKey = sealing.open(sealedKey, accountBinding(merchantId, name));
      const stripe = createStripeClient({ secretKey, timeoutMs: TIMEOUT_MS, url });
      for await (const page of listCharges(stripe, fromAt - CLOCK_MARGIN_MS)) {
        yield { charges: page.filter(isOwn).map((charge) => rowOf(name, charge)), refunds: [] };
      }
      for await (const page of listRefunds(stripe, fromAt - CLOCK_MARGIN_MS)) {
        yield { charges: [], refunds: page.filter(isOwn).map((one) => refundRowOf(name, one)) };
      }
    };
    return { gateway: name, from: new Date(fromAt), pages: pages() };
  });
}

function rowOf(gateway: string, charge: ListedCharge): BookRow {
  return {
    gateway,
    key: charge.key,
    merchant_id: charge.merchantId,
    intent_id: charge.intentId,
    subscription_id: charge.subscriptionId,
    amount_minor: charge.amountMinor,
    currency: charge.currency,
    outcome: charge.outcome,
    charge_id: charge.gatewayChargeId,
    created_at: new Date(charge.createdAt).toISOString(),
  };
}

function refundRowOf(gateway: string, refund: ListedRefund): BookRow {
  return {
    gateway,
    key: refund.key,
    merchant_id: refund.merchantId,
    charge_id: refund.gatewayChargeId,
    refund_id: refund.gatewayRefundId,
    amount_minor: refund.amountMinor,
    status: refund.status,
    created_at: new Date(refund.createdAt).toISOString(),
  };
}
